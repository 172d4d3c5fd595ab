# frozen_string_literal: true

require 'test_helper'
require 'policy'

class PolicyTest < Minitest::Test
  include Positions

  def decide(kind, view, legal)
    request = Request.new(kind: :"DECISION_KIND_#{kind}", view:, legal:)
    Policy.new(view, Ruleset.new).decide(request)
  end

  def test_plays_the_layer_with_the_most_expected_cards
    legal = [play(3), play(12), play(12, 12), play(12, 12, 12)]

    assert_equal play(12, 12, 12), decide(:PLAY, view([3, 12, 12, 12]), legal)
  end

  def test_prefers_the_layer_that_is_hard_to_snatch
    assert_equal play(13), decide(:PLAY, view([2, 13]), [play(2), play(13)])
    assert_equal play(4, 4), decide(:PLAY, view([4, 4, 9]), [play(4), play(4, 4), play(9)])
  end

  def test_counts_the_cards_that_victims_lose
    threatened = view([5, 6, 12, 12], hands: [5, 5], tops: [layer(4), layer(4)])
    legal = [play(5), play(6), play(12), play(12, 12)]

    assert_equal play(12), decide(:PLAY, threatened, legal)
    assert_equal play(12, 12), decide(:PLAY, view([5, 6, 12, 12], hands: [5, 5]), legal)
  end

  def test_does_not_count_its_own_layer_as_a_victim
    ours = view([2, 9, 9])
    ours.tables[0].layers << layer(5)

    assert_equal play(9, 9), decide(:PLAY, ours, [play(2), play(9), play(9, 9)])
  end

  def test_last_play_keeps_all_its_cards_and_has_no_victims
    legal = [play(2), play(2, 2)]
    against = { hands: [20], tops: [layer(1)] }

    assert_equal play(2, 2), decide(:PLAY, view([2, 2], **against), legal)
    assert_equal play(2), decide(:PLAY, view([2, 2, 3], **against), legal)
  end

  def test_takes_a_layer_that_matches_the_hand
    legal = [choice(:CHOICE_TAKE), choice(:CHOICE_LEAVE)]

    assert_equal choice(:CHOICE_TAKE),
                 decide(:TAKE_OR_LEAVE, view([8, 8], snatched: layer(8), victim: 1), legal)
    assert_equal choice(:CHOICE_LEAVE),
                 decide(:TAKE_OR_LEAVE, view([8, 8], snatched: layer(2), victim: 1), legal)
  end

  def test_takes_a_layer_if_it_is_worth_the_price_of_each_card
    legal = [choice(:CHOICE_TAKE), choice(:CHOICE_LEAVE)]
    pair = view([11], snatched: layer(5, 5), victim: 1)
    with_joker = view([8, 8], snatched: layer(2, JOKER), victim: 1)

    assert_equal choice(:CHOICE_LEAVE), decide(:TAKE_OR_LEAVE, pair, legal)
    assert_equal choice(:CHOICE_TAKE), decide(:TAKE_OR_LEAVE, with_joker, legal)
  end

  def test_reclaims_a_layer_that_is_better_than_the_draws
    legal = [choice(:CHOICE_RECLAIM), choice(:CHOICE_DISCARD)]
    hand = [7, 7, 10]

    assert_equal choice(:CHOICE_RECLAIM),
                 decide(:RECLAIM_OR_DISCARD, view(hand, snatched: layer(7), victim: 0), legal)
    assert_equal choice(:CHOICE_DISCARD),
                 decide(:RECLAIM_OR_DISCARD, view(hand, snatched: layer(3), victim: 0), legal)
    assert_equal choice(:CHOICE_DISCARD),
                 decide(:RECLAIM_OR_DISCARD,
                        view(hand, snatched: layer(12), victim: 0, display: [[7]]), legal)
  end

  def test_empty_deck_is_not_a_possible_draw
    legal = [choice(:CHOICE_RECLAIM), choice(:CHOICE_DISCARD)]
    empty = view([7, 7, 10], snatched: layer(3), victim: 0, display: [[2]], deck_size: 0)

    assert_equal choice(:CHOICE_RECLAIM), decide(:RECLAIM_OR_DISCARD, empty, legal)
  end

  def test_draws_the_card_that_makes_the_best_layer
    legal = [choice(:CHOICE_DRAW_DECK), draw(0, 2), draw(1, 6), draw(2, 13)]

    assert_equal draw(1, 6), decide(:DRAW, view([6, 6, 10], display: [[2], [6], [13]]), legal)
  end

  def test_draws_a_joker_for_the_layer_that_it_helps_most
    legal = [draw(0, 3), draw(1, JOKER)]

    assert_equal draw(1, JOKER), decide(:DRAW, view([3, 6, 6], display: [[3], [JOKER]]), legal)
  end

  def test_draws_from_the_deck_rather_than_a_useless_card
    legal = [choice(:CHOICE_DRAW_DECK), draw(0, 2)]

    assert_equal choice(:CHOICE_DRAW_DECK), decide(:DRAW, view([6, 6, 10], display: [[2]]), legal)
  end

  def test_draws_a_group_as_a_whole
    legal = [draw(0, 6), draw(1, 6, 13)]

    assert_equal draw(1, 6, 13), decide(:DRAW, view([6], display: [[6], [6, 13]]), legal)
  end

  def test_passes_if_no_draw_is_worth_the_price
    legal = [choice(:CHOICE_PASS), draw(0, 2), draw(1, 10)]
    shown = [[2], [10]]

    assert_equal choice(:CHOICE_PASS), decide(:OPTIONAL_DRAW, view([6], display: shown), legal)
    assert_equal draw(1, 10), decide(:OPTIONAL_DRAW, view([10], display: shown), legal)
  end

  def test_snatches_the_set_of_the_ghost_that_helps_most
    ghost = counts([3, 3, 9, 9])
    legal = [Action.new(ghost_value: 3), Action.new(ghost_value: 9)]

    assert_equal legal[1], decide(:GHOST_SET, view([11, 12], ghost:), legal)
    assert_equal legal[0], decide(:GHOST_SET, view([3, 3, 12], ghost:), legal)
  end

  def test_passes_on_the_ghost_if_no_set_is_worth_the_price
    legal = [Action.new(ghost_value: 3), choice(:CHOICE_PASS)]
    ghost = counts([3, 3])

    assert_equal choice(:CHOICE_PASS), decide(:GHOST_SET, view([11, 12], ghost:), legal)
    assert_equal legal[0], decide(:GHOST_SET, view([3, 3, 12], ghost:), legal)
  end

  def test_unknown_kind_of_decision_gets_the_first_action
    request = Request.new(kind: 99, view: view([2, 13]), legal: [play(2), play(13)])

    assert_equal play(2), Policy.new(request.view, Ruleset.new).decide(request)
  end
end
