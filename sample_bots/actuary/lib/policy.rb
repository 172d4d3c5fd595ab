# frozen_string_literal: true

require 'odds'

# Decides one request from its view. Every worth is a number of cards.
class Policy
  JOKER = Odds::JOKER

  # A card in the hand costs points. Only a card that is worth more than this is taken or drawn.
  PRICE = 0.5

  # The cost of a value that is new in the hand: playing it takes a turn.
  NEW_VALUE = 0.5

  def initialize(view, ruleset)
    @view = view
    @hand = view.hand.to_a
    @odds = Odds.new(view, ruleset)
  end

  # Returns one of the legal actions; of equals, the first one. For an unknown kind of decision it
  # returns the first legal action.
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
    when :ghost_value then worth_of_set(action.ghost_value)
    when :choice then action.choice == :CHOICE_DRAW_DECK ? worth_of_deck : PRICE # or a pass
    end
  end

  # Returns the cards of a play that we expect to keep on our table, plus the cards that the others
  # lose. A play that empties the hand ends the game: it keeps all cards and snatches nothing.
  def worth_of_play(layer)
    size = size_of(layer)
    return size if size == @hand.sum

    @odds.kept(layer.value, size) + (size * victims(layer))
  end

  # Counts the opponents who lose their top layer to a play.
  def victims(layer)
    tops = @view.tables.map { |table| table.layers.last }
    tops.delete_at(@view.seat)
    tops.compact.count do |top|
      size_of(top) == size_of(layer) && @odds.beats?(layer.value, top.value)
    end
  end

  # Returns true if the snatched layer is worth more than `price` for each card. If we discard our
  # own layer, we draw as many cards; in that case the price is the worth of a draw.
  def welcome?(price)
    worth_of_layer(@view.snatched) > price * size_of(@view.snatched)
  end

  # Returns the worth of the best draw.
  def worth_of_draw
    slots = @view['display'].reject { |slot| slot.cards.empty? } # see Odds#open_cards for the []
    draws = slots.map { |slot| worth_of_cards(slot.cards) }
    draws << worth_of_deck if @view.deck_size.positive?
    draws.max
  end

  # Returns the mean worth of the unseen card on top of the deck.
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

  # Returns the worth of a set of the ghost. A pass is worth the price of one card, so the price of
  # the other cards is subtracted.
  def worth_of_set(value)
    count = @view.ghost[value]
    worth_of_copies(value, count) - (PRICE * (count - 1))
  end

  # Returns how many more cards of our hand we expect to keep with `count` more copies of a card. A
  # joker joins the layer that it helps most.
  def worth_of_copies(card, count)
    return gain(card, count) unless card == JOKER

    helped = Odds::CARDS.select { |value| value == JOKER || @hand[value].positive? }
    helped.map { |value| gain(value, count) }.max
  end

  # Returns how many more cards of one value we expect to keep with `count` more copies.
  def gain(value, count)
    before = @hand[value].zero? ? NEW_VALUE : @odds.kept(value, @hand[value])
    @odds.kept(value, @hand[value] + count) - before
  end

  def size_of(layer)
    layer.naturals + layer.jokers
  end
end
