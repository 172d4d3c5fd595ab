# frozen_string_literal: true

# Connects to the referee and exchanges messages over one stream. Exit codes: 0 after a goodbye, 2
# if no referee started the program, 3 if the stream ended without a goodbye.

$LOAD_PATH.unshift(File.join(__dir__, 'lib'))

require 'linko/v1/play_services_pb'
require 'session'

address, token = ENV.values_at('REFEREE_ADDRESS', 'REFEREE_TOKEN')
unless address && token
  warn 'The referee starts this program: try `referee play . path/to/another`.'
  exit 2
end

# A thread of gRPC sends the messages of this queue. Closing the queue closes our side of the
# stream.
outgoing = Queue.new
messages = Enumerator.produce { outgoing.pop || raise(StopIteration) }

session = Session.new
outgoing << session.hello(token)
goodbye = nil
begin
  referee = Linko::V1::RefereeService::Stub.new(address, :this_channel_is_insecure)
  call = referee.play(messages, return_op: true) do |message|
    answer = session.answer(message)
    outgoing << answer if answer
    goodbye = message.goodbye
  end
  # The call ends when both sides are closed. Close ours after a goodbye, or when the referee has
  # closed its side without one. Only the call's status shows the latter.
  Thread.new do
    sleep 0.1 until goodbye || call.status
    outgoing.close
    sleep 1
    call.cancel # the referee did not close its side in time
  end
  call.execute
rescue GRPC::BadStatus => e
  warn "The stream broke: #{e.message}" unless goodbye
end

exit 3 unless goodbye
warn "The referee says: #{goodbye.reason}" unless goodbye.reason.empty?
