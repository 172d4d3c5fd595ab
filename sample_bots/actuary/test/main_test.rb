# frozen_string_literal: true

require 'test_helper'
require 'linko/v1/play_services_pb'
require 'open3'
require 'tmpdir'

class MainTest < Minitest::Test
  include Positions

  # A referee that sends the given messages and closes the stream.
  class Referee < Linko::V1::RefereeService::Service
    def initialize(*messages)
      super()
      @messages = messages
    end

    def play(_messages, _call)
      @messages
    end
  end

  # Runs the program. Returns its standard error and its exit code.
  def run_bot(environment)
    _, errors, status = Open3.capture3(environment, 'ruby', File.join(__dir__, '../main.rb'))
    [errors, status.exitstatus]
  end

  def run_bot_with(referee)
    Dir.mktmpdir do |folder|
      address = "unix:#{folder}/referee"
      serve(referee, address) do
        run_bot('REFEREE_ADDRESS' => address, 'REFEREE_TOKEN' => 'secret')
      end
    end
  end

  def serve(referee, address)
    server = GRPC::RpcServer.new
    server.add_http2_port(address, :this_port_is_insecure)
    server.handle(referee)
    serving = Thread.new { server.run }
    server.wait_till_running
    yield
  ensure
    server.stop
    serving.join
  end

  def test_prints_a_hint_when_started_by_hand
    errors, code = run_bot('REFEREE_ADDRESS' => nil, 'REFEREE_TOKEN' => nil)

    assert_match(/referee play/, errors)
    assert_equal 2, code
  end

  def test_exits_cleanly_after_a_goodbye
    goodbye = RefereeMessage.new(goodbye: Goodbye.new)

    assert_equal ['', 0], run_bot_with(Referee.new(goodbye))
  end

  def test_prints_the_reason_of_a_goodbye
    goodbye = RefereeMessage.new(goodbye: Goodbye.new(reason: 'wrong token'))

    assert_equal ["The referee says: wrong token\n", 0], run_bot_with(Referee.new(goodbye))
  end

  def test_fails_when_the_stream_ends_without_a_goodbye
    assert_equal ['', 3], run_bot_with(Referee.new)
  end

  def test_fails_when_no_referee_listens
    errors, code = run_bot('REFEREE_ADDRESS' => 'unix:/nowhere', 'REFEREE_TOKEN' => 'secret')

    assert_match(/stream broke/, errors)
    assert_equal 3, code
  end
end
