# frozen_string_literal: true

$LOAD_PATH.unshift(File.join(__dir__, '../lib'))

require 'linko/v1/play_pb'
require 'minitest/autorun'

# Builds positions from cards. The bot has seat 0.
module Positions
  include Linko::V1

  JOKER = 14
  PACK = [*1..13].flat_map { |value| [value] * 8 } + ([JOKER] * 5)

  # Returns some cards as 15 counts.
  def counts(cards)
    tally = cards.tally
    Array.new(15) { |card| tally.fetch(card, 0) }
  end

  def layer(*cards)
    naturals = cards - [JOKER]
    Layer.new(
      value: naturals.first || JOKER, naturals: naturals.size, jokers: cards.size - naturals.size
    )
  end

  def play(*cards)
    Action.new(play: layer(*cards))
  end

  def choice(name)
    Action.new(choice: name)
  end

  def draw(slot, *cards)
    Action.new(draw_display: DrawDisplay.new(slot:, cards:))
  end

  # Builds a view. `hands` are the sizes of the opponents' hands, and `tops` their top layers. The
  # deck has all other cards.
  def view(hand, hands: [5], tops: [], display: [], **rest)
    opponents = hands.each_index.map { |seat| Table.new(layers: [tops[seat]].compact) }
    View.new(
      hand: counts(hand), hand_sizes: [hand.size, *hands], tables: [Table.new, *opponents],
      display: Array.new(6) { |slot| Slot.new(cards: display[slot] || []) },
      discards: counts([]), deck_size: 109 - hand.size - hands.sum, **rest
    )
  end

  # Builds a view in which nobody has played and all cards but `unseen` are discarded.
  def view_with_unseen(unseen, hands:)
    discards = unseen.each_with_object(PACK.dup) { |card, pile| pile.delete_at(pile.index(card)) }
    view([], hands:, discards: counts(discards), deck_size: unseen.size - hands.sum)
  end
end
