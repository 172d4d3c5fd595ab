// Keeps one stream to the referee open for the whole life of the process. To change how the bot
// plays, edit policy.h and policy.cpp; this file can stay as it is.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <unordered_map>

#include "linko/v1/play.grpc.pb.h"
#include "policy.h"

namespace {

using linko::v1::BotMessage;
using linko::v1::RefereeMessage;
using linko::v1::RefereeService;
using Stream = grpc::ClientReaderWriter<BotMessage, RefereeMessage>;

constexpr std::uint32_t kProtocolVersion = 1;
constexpr std::uint32_t kMaxGames = 64;

// How long the referee may take to close its side of the stream.
constexpr std::chrono::seconds kClosing{1};

enum ExitCode { kGoodbye = 0, kNoReferee = 2, kStreamBroken = 3 };

BotMessage Hello(const std::string& token) {
  BotMessage message;
  auto& hello = *message.mutable_hello();
  hello.set_protocol_version(kProtocolVersion);
  hello.set_token(token);
  hello.set_name("linko-bot");  // only for logs; tables show the name in bot.toml
  hello.set_max_games(kMaxGames);
  return message;
}

// The games in progress, by game id.
using Games = std::unordered_map<std::string, Player>;

// Handles a message of the referee and returns the answer, which is empty if none is needed.
BotMessage Answer(const RefereeMessage& message, Games& games) {
  BotMessage answer;
  for (const auto& start : message.game_starts()) {
    games.emplace(start.game_id(), start);
    answer.add_ready()->set_game_id(start.game_id());
  }
  for (const auto& request : message.requests()) {
    auto& reply = *answer.add_replies();
    reply.set_game_id(request.game_id());
    reply.set_decision_id(request.decision_id());
    *reply.mutable_action() = games.at(request.game_id()).Decide(request);
  }
  for (const auto& end : message.game_ends()) {
    games.erase(end.game_id());
  }
  return answer;
}

// Closes the stream and returns its status. If the referee does not close its side in time, cancels
// the stream.
grpc::Status Close(grpc::ClientContext& context, Stream& stream) {
  stream.WritesDone();
  auto finished = std::async(std::launch::async, [&] { return stream.Finish(); });
  if (finished.wait_for(kClosing) == std::future_status::timeout) context.TryCancel();
  return finished.get();
}

// Plays until the referee says goodbye.
ExitCode Play(const std::string& address, const std::string& token) {
  const auto stub =
      RefereeService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub->Play(&context);
  stream->Write(Hello(token));

  Games games;
  RefereeMessage message;
  while (stream->Read(&message)) {
    const BotMessage answer = Answer(message, games);
    if (answer.ready_size() + answer.replies_size() > 0) stream->Write(answer);
    if (message.has_goodbye()) {
      const std::string& reason = message.goodbye().reason();
      if (!reason.empty()) std::cerr << "the referee said goodbye: " << reason << '\n';
      Close(context, *stream);
      return kGoodbye;
    }
  }
  // The referee may still be waiting, if its message cannot be decoded.
  const grpc::Status status = Close(context, *stream);
  std::cerr << "the stream ended without a goodbye: "
            << (status.ok() ? "the referee closed it" : status.error_message()) << '\n';
  return kStreamBroken;
}

// Returns the value of an environment variable, or an empty string if it is not set.
std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

int main() {
  const std::string address = FromEnvironment("REFEREE_ADDRESS");
  const std::string token = FromEnvironment("REFEREE_TOKEN");
  if (address.empty() || token.empty()) {
    std::cerr << "this program is a bot: start it with `referee play`\n";
    return kNoReferee;
  }
  return Play(address, token);
}
