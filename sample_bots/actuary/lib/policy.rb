# frozen_string_literal: true

require 'odds'

# The thinking: answers one request by what its view shows. All worths are in cards.
class Policy
  JOKER = Odds::JOKER

  # What a card has to be worth to be welcome in the hand, where it counts against us.
  PRICE = 0.5

  # What a value that is new to the hand costs: a turn to play it.
  NEW_VALUE = 0.5

  def initialize(view, ruleset)
    @view = view
    @hand = view.hand.to_a
    @odds = Odds.new(view, ruleset)
  end

  # One of the request's legal actions. Of equals it is the first, and so it is for a decision of a
  # kind that we do not know.
  def decide(request)
    take, leave = request.legal
    case request.kind
    when :DECISION_KIND_TAKE_OR_LEAVE then welcome?(PRICE) ? take : leave
    when :DECISION_KIND_RECLAIM_OR_DISCARD then welcome?(worth_of_draw) ? take : leave
    when :DECISION_KIND_PLAY, :DECISION_KIND_DRAW, :DECISION_KIND_OPTIONAL_DRAW,
         :DECISION_KIND_GHOST_SET
      request.legal.max_by { |action| worth(action) }
    else request.legal.first
    end
  end

  private

  def worth(action)
    case action.kind
    when :play then worth_of_play(action.play)
    when :draw_display then worth_of_cards(action.draw_display.cards)
    when :ghost_value then worth_of_copies(action.ghost_value, @view.ghost[action.ghost_value])
    when :choice then action.choice == :CHOICE_DRAW_DECK ? worth_of_deck : PRICE # or a pass
    end
  end

  # How many cards we expect to keep on our table by a play, and how many it costs the others. The
  # play that empties the hand ends the game: it keeps all and snatches nothing.
  def worth_of_play(layer)
    size = size_of(layer)
    return size if size == @hand.sum

    @odds.kept(layer.value, size) + (size * victims(layer))
  end

  # How many opponents lose their top layer to a play.
  def victims(layer)
    tops = @view.tables.map { |table| table.layers.last }
    tops.delete_at(@view.seat)
    tops.compact.count do |top|
      size_of(top) == size_of(layer) && @odds.beats?(layer.value, top.value)
    end
  end

  # Whether the snatched layer is worth more than so much a card in our hand. To discard a layer of
  # our own is to draw as many other cards, so then the price is what a draw is worth.
  def welcome?(price)
    worth_of_layer(@view.snatched) > price * size_of(@view.snatched)
  end

  # What the best draw is worth.
  def worth_of_draw
    slots = @view['display'].reject { |slot| slot.cards.empty? } # see Odds#open_cards for the []
    draws = slots.map { |slot| worth_of_cards(slot.cards) }
    draws << worth_of_deck if @view.deck_size.positive?
    draws.max
  end

  # What the unseen card on top of the deck is worth, on the average.
  def worth_of_deck
    @odds.mean_of_unseen { |card| worth_of_copies(card, 1) }
  end

  def worth_of_layer(layer)
    naturals = layer.naturals.zero? ? 0 : worth_of_copies(layer.value, layer.naturals)
    jokers = layer.jokers.zero? ? 0 : worth_of_copies(JOKER, layer.jokers)
    naturals + jokers
  end

  def worth_of_cards(cards)
    cards.tally.sum { |card, count| worth_of_copies(card, count) }
  end

  # How much more we expect to keep of the layers in our hand with so many more of a card. A joker
  # goes where it helps most.
  def worth_of_copies(card, count)
    return gain(card, count) unless card == JOKER

    helped = Odds::CARDS.select { |value| value == JOKER || @hand[value].positive? }
    helped.map { |value| gain(value, count) }.max
  end

  # How much more we expect to keep of a layer of all our cards of a value with so many more.
  def gain(value, count)
    before = @hand[value].zero? ? NEW_VALUE : @odds.kept(value, @hand[value])
    @odds.kept(value, @hand[value] + count) - before
  end

  def size_of(layer)
    layer.naturals + layer.jokers
  end
end
