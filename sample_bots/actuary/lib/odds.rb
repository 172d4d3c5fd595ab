# frozen_string_literal: true

# Computes how many cards of a layer we can expect to keep. It assumes that every unseen card is
# equally likely to be in any hidden place: in an opponent's hand or in the deck.
class Odds
  JOKER = 14
  CARDS = (1..JOKER)
  COPIES = [0, *Array.new(13, 8), 5].freeze

  # The probability that an opponent who can snatch a layer does so.
  WILLINGNESS = 0.5

  # Pascal's triangle: CHOOSE[n][k] is the number of ways to choose k of n cards.
  CHOOSE = COPIES.sum.times.each_with_object([[1]]) do |_, rows|
    rows << [1, *rows.last.each_cons(2).map(&:sum), 1]
  end.freeze

  def initialize(view, ruleset)
    @ruleset = ruleset
    @unseen = unseen(view)
    @hands = view.hand_sizes.to_a
    @hands.delete_at(view.seat)
    @kept = {}
  end

  # Returns how many cards of a layer we expect to keep on our table until our next turn.
  def kept(value, size)
    @kept[[value, size]] ||= size * (1 - (WILLINGNESS * danger(value, size)))
  end

  # Returns the mean of the block over all unseen cards.
  def mean_of_unseen
    cards = CARDS.reject { |card| @unseen[card].zero? }
    cards.sum { |card| @unseen[card] * yield(card) } / @unseen.sum
  end

  # Returns true if a layer of `value` snatches a layer of `other` of the same size.
  def beats?(value, other)
    case [value, other]
    when [1, JOKER] then @ruleset.ones_snatch_jokers
    when [1, 13] then @ruleset.ones_snatch_thirteens
    else value > other
    end
  end

  private

  # Returns the number of unseen copies of each card: 15 counts.
  def unseen(view)
    open = open_cards(view).tally
    piles = [view.hand, view.discards, view.ghost].reject(&:empty?) # only the duel has a ghost
    COPIES.each_with_index.map do |copies, card|
      copies - piles.sum { |pile| pile[card] } - open.fetch(card, 0)
    end
  end

  # Returns the cards of all layers and of the display.
  def open_cards(view)
    layers = [*view.tables.flat_map { |table| table.layers.to_a }, view.snatched].compact
    # Not `view.display`: that is Ruby's Object#display, which prints the view.
    slots = view['display'].to_a
    layers.flat_map { |layer| cards_of(layer) } + slots.flat_map { |slot| slot.cards.to_a }
  end

  def cards_of(layer)
    ([layer.value] * layer.naturals) + ([JOKER] * layer.jokers)
  end

  # Returns the probability that any opponent holds a layer that snatches this one.
  def danger(value, size)
    threats = CARDS.select { |card| beats?(card, value) }
    safe = @hands.product(threats).map { |hand, card| 1 - chance_to_hold(card, size, hand) }
    1 - safe.reduce(1.0, :*)
  end

  # Returns the probability that a hand of `hand` unseen cards holds a layer of this value and size,
  # jokers included.
  def chance_to_hold(value, size, hand)
    return 0 if @unseen[value].zero?

    fit = value == JOKER ? @unseen[JOKER] : @unseen[value] + @unseen[JOKER]
    chance_of_at_least(size, fit, hand)
  end

  # Returns the probability that `hand` random unseen cards include at least `wanted` of `fit`
  # cards.
  def chance_of_at_least(wanted, fit, hand)
    rest = @unseen.sum - fit
    among = [wanted, hand - rest].max..[fit, hand].min
    ways = among.sum { |count| CHOOSE[fit][count] * CHOOSE[rest][hand - count] }
    ways.fdiv(CHOOSE[fit + rest][hand])
  end
end
