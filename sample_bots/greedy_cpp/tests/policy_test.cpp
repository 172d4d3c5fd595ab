// Tests the policy with examples. Run it with `cmake --workflow --preset test`.

#include "policy.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using linko::v1::Action;
using linko::v1::GameStart;
using linko::v1::Request;

// Messages are written in protobuf's text format.
struct Example {
  std::string name;
  std::string ruleset;
  std::string request;
  std::string action;
};

const std::vector<Example> kExamples = {
    {"of equal gains the higher value is played", "", R"pb(
       kind: DECISION_KIND_PLAY
       view {
         seat: 1
         hand: [ 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0 ]
         tables { layers { value: 2 naturals: 1 } }
         tables {}
         tables { layers { value: 1 naturals: 1 } }
       }
       legal { play { value: 3 naturals: 1 } }
       legal { play { value: 9 naturals: 1 } }
       legal { play { value: 9 naturals: 2 } })pb",
     "play { value: 9 naturals: 1 }"},
    {"without victims the largest layer is played", "", R"pb(
       kind: DECISION_KIND_PLAY
       view {
         hand: [ 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 1 ]
         tables {}
         tables {}
       }
       legal { play { value: 7 naturals: 2 } }
       legal { play { value: 7 naturals: 2 jokers: 1 } }
       legal { play { value: 12 naturals: 2 } }
       legal { play { value: 12 naturals: 2 jokers: 1 } }
       legal { play { value: 14 jokers: 1 } })pb",
     "play { value: 12 naturals: 2 jokers: 1 }"},
    {"a joker makes a layer larger", "", R"pb(
       kind: DECISION_KIND_PLAY
       view {
         hand: [ 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1 ]
         tables {}
         tables {}
       }
       legal { play { value: 5 naturals: 1 } }
       legal { play { value: 5 naturals: 1 jokers: 1 } }
       legal { play { value: 14 jokers: 1 } })pb",
     "play { value: 5 naturals: 1 jokers: 1 }"},
    {"of equal gains the fewest jokers are played", "", R"pb(
       kind: DECISION_KIND_PLAY
       view {
         hand: [ 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 ]
         tables {}
         tables {}
       }
       legal { play { value: 2 naturals: 2 } }
       legal { play { value: 3 naturals: 1 jokers: 1 } })pb",
     "play { value: 2 naturals: 2 }"},
    {"neither your own layers nor those below the top are snatched", "", R"pb(
       kind: DECISION_KIND_PLAY
       view {
         seat: 0
         hand: [ 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0 ]
         tables { layers { value: 7 naturals: 1 } }
         tables {
           layers { value: 7 naturals: 1 }
           layers { value: 9 naturals: 1 }
         }
       }
       legal { play { value: 6 naturals: 1 } }
       legal { play { value: 6 naturals: 2 } }
       legal { play { value: 8 naturals: 1 } })pb",
     "play { value: 6 naturals: 2 }"},
    {"1s snatch jokers if the rules say so", "ones_snatch_jokers: true", R"pb(
       kind: DECISION_KIND_PLAY
       view {
         hand: [ 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0 ]
         tables {}
         tables { layers { value: 14 jokers: 1 } }
       }
       legal { play { value: 1 naturals: 1 } }
       legal { play { value: 9 naturals: 1 } })pb",
     "play { value: 1 naturals: 1 }"},
    {"the rule for jokers does not apply to 13s", "ones_snatch_jokers: true", R"pb(
       kind: DECISION_KIND_PLAY
       view {
         hand: [ 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0 ]
         tables {}
         tables { layers { value: 13 naturals: 1 } }
       }
       legal { play { value: 1 naturals: 1 } }
       legal { play { value: 9 naturals: 1 } })pb",
     "play { value: 9 naturals: 1 }"},
    {"1s snatch 13s if the rules say so", "ones_snatch_thirteens: true", R"pb(
       kind: DECISION_KIND_PLAY
       view {
         hand: [ 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0 ]
         tables {}
         tables { layers { value: 13 naturals: 1 } }
       }
       legal { play { value: 1 naturals: 1 } }
       legal { play { value: 9 naturals: 1 } })pb",
     "play { value: 1 naturals: 1 }"},
    {"a card that you hold already is taken", "", R"pb(
       kind: DECISION_KIND_TAKE_OR_LEAVE
       view {
         hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ]
         snatched { value: 4 naturals: 1 }
       }
       legal { choice: CHOICE_TAKE }
       legal { choice: CHOICE_LEAVE })pb",
     "choice: CHOICE_TAKE"},
    {"two cards of a value that you do not hold are left", "", R"pb(
       kind: DECISION_KIND_TAKE_OR_LEAVE
       view {
         hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ]
         snatched { value: 9 naturals: 2 }
       }
       legal { choice: CHOICE_TAKE }
       legal { choice: CHOICE_LEAVE })pb",
     "choice: CHOICE_LEAVE"},
    {"a layer of three cards is reclaimed, whatever its value", "", R"pb(
       kind: DECISION_KIND_RECLAIM_OR_DISCARD
       view {
         hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ]
         snatched { value: 9 naturals: 2 jokers: 1 }
       }
       legal { choice: CHOICE_RECLAIM }
       legal { choice: CHOICE_DISCARD })pb",
     "choice: CHOICE_RECLAIM"},
    {"a single card of a value that you do not hold is discarded", "", R"pb(
       kind: DECISION_KIND_RECLAIM_OR_DISCARD
       view {
         hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ]
         snatched { value: 14 jokers: 1 }
       }
       legal { choice: CHOICE_RECLAIM }
       legal { choice: CHOICE_DISCARD })pb",
     "choice: CHOICE_DISCARD"},
    {"the card that you hold most often is drawn", "", R"pb(
       kind: DECISION_KIND_DRAW
       view { hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ] }
       legal { choice: CHOICE_DRAW_DECK }
       legal { draw_display { slot: 0 cards: 13 } }
       legal { draw_display { slot: 1 cards: 10 } }
       legal { draw_display { slot: 2 cards: 4 } })pb",
     "draw_display { slot: 2 cards: 4 }"},
    {"the deck is worth as much as a 6 and comes first", "", R"pb(
       kind: DECISION_KIND_DRAW
       view { hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ] }
       legal { choice: CHOICE_DRAW_DECK }
       legal { draw_display { slot: 0 cards: 6 } }
       legal { draw_display { slot: 1 cards: 5 } }
       legal { draw_display { slot: 2 cards: 3 } })pb",
     "choice: CHOICE_DRAW_DECK"},
    {"a group is worth its best card, and a joker is the best", "", R"pb(
       kind: DECISION_KIND_OPTIONAL_DRAW
       view { hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ] }
       legal { choice: CHOICE_PASS }
       legal { choice: CHOICE_DRAW_DECK }
       legal { draw_display { slot: 0 cards: 4 } }
       legal {
         draw_display {
           slot: 3
           cards: [ 2, 14, 13 ]
         }
       })pb",
     "draw_display { slot: 3 cards: [2, 14, 13] }"},
    {"an optional draw of a card that you do not hold is declined", "", R"pb(
       kind: DECISION_KIND_OPTIONAL_DRAW
       view { hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ] }
       legal { choice: CHOICE_PASS }
       legal { choice: CHOICE_DRAW_DECK }
       legal { draw_display { slot: 0 cards: 13 } }
       legal { draw_display { slot: 1 cards: 12 } }
       legal { draw_display { slot: 2 cards: 5 } })pb",
     "choice: CHOICE_PASS"},
    {"the ghost's set that you hold most often is snatched", "", R"pb(
       kind: DECISION_KIND_GHOST_SET
       view { hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ] }
       legal { ghost_value: 4 }
       legal { ghost_value: 10 }
       legal { ghost_value: 12 })pb",
     "ghost_value: 4"},
    {"a snatch from the ghost of cards that you do not hold is declined", "", R"pb(
       kind: DECISION_KIND_GHOST_SET
       view { hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ] }
       legal { ghost_value: 3 }
       legal { ghost_value: 12 }
       legal { choice: CHOICE_PASS })pb",
     "choice: CHOICE_PASS"},
    {"an optional snatch from the ghost of cards that you hold is made", "", R"pb(
       kind: DECISION_KIND_GHOST_SET
       view { hand: [ 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 ] }
       legal { ghost_value: 3 }
       legal { choice: CHOICE_PASS })pb",
     "ghost_value: 3"},
    {"an unknown kind of decision gets the first legal action", "", R"pb(
       kind: 99
       view { hand: [ 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 ] }
       legal { ghost_value: 1 }
       legal { ghost_value: 10 })pb",
     "ghost_value: 1"},
};

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) {
    throw std::invalid_argument("not a " + message.GetTypeName() + ": " + text);
  }
  return message;
}

bool Holds(const Example& example) {
  GameStart start;
  *start.mutable_ruleset() = Parse<linko::v1::Ruleset>(example.ruleset);
  const Action expected = Parse<Action>(example.action);
  const Action actual = Player(start).Decide(Parse<Request>(example.request));
  if (google::protobuf::util::MessageDifferencer::Equals(actual, expected)) return true;
  std::cerr << example.name << ": expected " << expected.ShortDebugString() << ", got "
            << actual.ShortDebugString() << '\n';
  return false;
}

}  // namespace

int main() {
  int failures = 0;
  for (const Example& example : kExamples) failures += Holds(example) ? 0 : 1;
  return failures == 0 ? 0 : 1;
}
