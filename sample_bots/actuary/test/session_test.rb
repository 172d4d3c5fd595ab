# frozen_string_literal: true

require 'test_helper'
require 'session'

class SessionTest < Minitest::Test
  include Positions

  def setup
    @session = Session.new
  end

  def start(game_id, **rules)
    GameStart.new(game_id:, ruleset: Ruleset.new(**rules))
  end

  # A request to play a 1 or a 2 against an opponent with a joker on top.
  def request(game_id, decision_id)
    Request.new(
      game_id:, decision_id:, kind: :DECISION_KIND_PLAY,
      view: view([1, 2], tops: [layer(JOKER)]), legal: [play(1), play(2)]
    )
  end

  def test_hello_has_version_token_and_number_of_games
    hello = @session.hello('secret').hello

    assert_equal [1, 'secret', 64], [hello.protocol_version, hello.token, hello.max_games]
  end

  def test_each_game_start_gets_a_ready
    answer = @session.answer(RefereeMessage.new(game_starts: [start('a'), start('b')]))

    assert_equal %w[a b], answer.ready.map(&:game_id)
    assert_empty answer.replies
  end

  def test_requests_of_several_games_are_decided_by_the_rules_of_each
    games = [start('a'), start('b', ones_snatch_jokers: true)]
    @session.answer(RefereeMessage.new(game_starts: games))
    requests = [request('b', 7), request('a', 5)]
    replies = @session.answer(RefereeMessage.new(requests:)).replies

    assert_equal [['b', 7, play(1)], ['a', 5, play(2)]],
                 (replies.map { |reply| [reply.game_id, reply.decision_id, reply.action] })
  end

  def test_game_can_start_in_the_message_that_ends_another
    @session.answer(RefereeMessage.new(game_starts: [start('a')]))
    answer = @session.answer(
      RefereeMessage.new(
        game_ends: [GameEnd.new(game_id: 'a')],
        game_starts: [start('b')], requests: [request('b', 1)]
      )
    )

    assert_equal [['b'], [1]], [answer.ready.map(&:game_id), answer.replies.map(&:decision_id)]
  end

  def test_finished_game_is_forgotten
    @session.answer(RefereeMessage.new(game_starts: [start('a')]))
    @session.answer(RefereeMessage.new(game_ends: [GameEnd.new(game_id: 'a')]))

    assert_raises(KeyError) { @session.answer(RefereeMessage.new(requests: [request('a', 1)])) }
  end

  def test_game_end_and_goodbye_get_no_answer
    @session.answer(RefereeMessage.new(game_starts: [start('a')]))

    assert_nil @session.answer(RefereeMessage.new(game_ends: [GameEnd.new(game_id: 'a')]))
    assert_nil @session.answer(RefereeMessage.new(goodbye: Goodbye.new))
  end
end
