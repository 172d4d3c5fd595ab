# frozen_string_literal: true

require 'test_helper'
require 'odds'

class OddsTest < Minitest::Test
  include Positions

  def test_expected_cards_follow_from_the_probability_of_a_snatch
    odds = Odds.new(view_with_unseen([4, 9, 9, 13], hands: [1]), Ruleset.new)

    assert_in_delta 1.0, odds.kept(13, 1)
    assert_in_delta 1 - (0.5 * 0.25), odds.kept(12, 1)
    assert_in_delta 1 - (0.5 * (1 - (0.75 * 0.5))), odds.kept(8, 1)
  end

  def test_small_hand_cannot_snatch_a_large_layer
    odds = Odds.new(view_with_unseen([9, 9, 9, 9], hands: [1, 2]), Ruleset.new)

    assert_in_delta 3.0, odds.kept(8, 3)
    assert_in_delta 2 * (1 - 0.5), odds.kept(8, 2)
  end

  def test_jokers_can_complete_a_layer_that_snatches
    odds = Odds.new(view_with_unseen([9, JOKER, 1, 1], hands: [2]), Ruleset.new)

    assert_in_delta 2 * (1 - (0.5 / 6)), odds.kept(8, 2)
  end

  def test_visible_cards_of_every_place_are_counted
    jokers = layer(JOKER, JOKER, JOKER, JOKER)
    open = view([9, 9], hands: [5], tops: [layer(9, 9, JOKER)], display: [[9], [13, 13]],
                        discards: counts([9, 9]), ghost: counts([9]), snatched: jokers)
    odds = Odds.new(open, Ruleset.new)
    seen = 2 + 3 + 3 + 2 + 1 + 4

    assert_in_delta(6.fdiv(109 - seen), odds.mean_of_unseen { |card| card == 13 ? 1.0 : 0.0 })
    assert_in_delta(0.0, odds.mean_of_unseen { |card| [9, JOKER].include?(card) ? 1.0 : 0.0 })
  end

  def test_ones_snatch_as_the_ruleset_says
    some = view([])
    expert = Odds.new(some, Ruleset.new(ones_snatch_jokers: true, ones_snatch_thirteens: true))
    basic = Odds.new(some, Ruleset.new)

    assert expert.beats?(1, JOKER) && expert.beats?(1, 13) && !expert.beats?(1, 12)
    refute basic.beats?(1, JOKER) || basic.beats?(1, 13)
    assert basic.beats?(JOKER, 13) && !basic.beats?(5, 5)
    assert_operator expert.kept(13, 1), :<, basic.kept(13, 1)
  end
end
