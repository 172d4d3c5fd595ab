# frozen_string_literal: true

require 'linko/v1/play_pb'
require 'policy'

# Handles the messages of the referee, without any I/O. It remembers the ruleset of each game.
class Session
  include Linko::V1

  # The number of games that one process can play at the same time.
  MAX_GAMES = 64

  def initialize
    @rulesets = {} # by game id
  end

  # Returns the first message.
  def hello(token)
    hello = Hello.new(protocol_version: 1, token:, name: 'ruby', max_games: MAX_GAMES)
    BotMessage.new(hello:)
  end

  # Handles a message and returns the answer, or nil if none is needed.
  def answer(message)
    ready = message.game_starts.map { |start| begin_game(start) }
    replies = message.requests.map { |request| reply_to(request) }
    message.game_ends.each { |finished| @rulesets.delete(finished.game_id) }
    BotMessage.new(ready:, replies:) unless ready.empty? && replies.empty?
  end

  private

  def begin_game(start)
    @rulesets[start.game_id] = start.ruleset
    Ready.new(game_id: start.game_id)
  end

  def reply_to(request)
    policy = Policy.new(request.view, @rulesets.fetch(request.game_id))
    action = policy.decide(request)
    Reply.new(game_id: request.game_id, decision_id: request.decision_id, action:)
  end
end
