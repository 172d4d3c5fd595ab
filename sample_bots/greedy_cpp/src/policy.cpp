// The policy `greedy`: takes the most cards at every decision, without a plan. It remembers only
// the rules of the game.

#include "policy.h"

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <tuple>
#include <utility>

namespace {

using linko::v1::Action;
using linko::v1::Choice;
using linko::v1::Layer;
using linko::v1::Request;
using linko::v1::Ruleset;
using linko::v1::View;

constexpr std::uint32_t kJoker = 14;

int Size(const Layer& layer) { return layer.naturals() + layer.jokers(); }

bool Snatches(const Ruleset& rules, const Layer& attacker, const Layer& top) {
  if (Size(attacker) != Size(top)) return false;
  if (attacker.value() == 1) {
    return (top.value() == kJoker && rules.ones_snatch_jokers()) ||
           (top.value() == 13 && rules.ones_snatch_thirteens());
  }
  return top.value() < attacker.value();
}

// Counts the other seats from which a layer would snatch. The duel's ghost is not a seat.
int Victims(const Ruleset& rules, const View& view, const Layer& attacker) {
  int victims = 0;
  for (int seat = 0; seat < view.tables_size(); ++seat) {
    const auto& layers = view.tables(seat).layers();
    if (std::cmp_not_equal(seat, view.seat()) && !layers.empty()) {
      victims += Snatches(rules, attacker, *layers.rbegin());
    }
  }
  return victims;
}

// Rates a play by the cards that you gain and the others lose, then by few jokers, then by value.
std::tuple<int, int, int> Gain(const Ruleset& rules, const View& view, const Layer& layer) {
  const int jokers = layer.jokers();
  return {Size(layer) * (1 + Victims(rules, view, layer)), -jokers, layer.value()};
}

// Returns true if the snatched layer is large or matches cards of your hand.
bool IsWorthHaving(const View& view) {
  constexpr int kMany = 3;
  const Layer& layer = view.snatched();
  return Size(layer) >= kMany || view.hand(layer.value()) >= 1;
}

// Rates a card: jokers first, then by the number of copies in your hand, then by value.
int CardWorth(const View& view, std::uint32_t card) {
  return card == kJoker ? 1000 : 100 * view.hand(card) + card;
}

// Rates a draw or a set of the ghost by its best card.
int Worth(const View& view, const Action& action) {
  constexpr int kPass = 99;  // below every card that you hold already, above every other card
  constexpr int kDeck = 6;   // the card is unknown
  switch (action.kind_case()) {
    case Action::kDrawDisplay:
      return std::ranges::max(
          action.draw_display().cards() |
          std::views::transform([&](std::uint32_t card) { return CardWorth(view, card); }));
    case Action::kGhostValue:
      return CardWorth(view, action.ghost_value());
    default:
      return action.choice() == linko::v1::CHOICE_PASS ? kPass : kDeck;
  }
}

// Returns the legal action with the highest merit; of equals, the first one.
template <typename Merit>
Action Best(const Request& request, Merit merit) {
  return *std::ranges::max_element(request.legal(), {}, merit);
}

Action Choose(Choice choice) {
  Action action;
  action.set_choice(choice);
  return action;
}

}  // namespace

Player::Player(const linko::v1::GameStart& start) : rules_(start.ruleset()) {}

Action Player::Decide(const Request& request) const {
  const View& view = request.view();
  switch (request.kind()) {
    case linko::v1::DECISION_KIND_PLAY:
      return Best(request, [&](const Action& action) { return Gain(rules_, view, action.play()); });
    case linko::v1::DECISION_KIND_TAKE_OR_LEAVE:
      return Choose(IsWorthHaving(view) ? linko::v1::CHOICE_TAKE : linko::v1::CHOICE_LEAVE);
    case linko::v1::DECISION_KIND_RECLAIM_OR_DISCARD:
      return Choose(IsWorthHaving(view) ? linko::v1::CHOICE_RECLAIM : linko::v1::CHOICE_DISCARD);
    case linko::v1::DECISION_KIND_DRAW:
    case linko::v1::DECISION_KIND_OPTIONAL_DRAW:
    case linko::v1::DECISION_KIND_GHOST_SET:
      return Best(request, [&](const Action& action) { return Worth(view, action); });
    default:  // a kind that a later version of the protocol may add
      return request.legal(0);
  }
}
