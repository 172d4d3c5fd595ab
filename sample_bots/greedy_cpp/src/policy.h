// The thinking of the bot. A bot of your own begins here and in policy.cpp.

#pragma once

#include "linko/v1/play.pb.h"
#include "linko/v1/table.pb.h"

// One game, from its start to its end, as it is played from one seat. Several are in progress at
// the same time, each with a player of its own: what the bot remembers of a game is a member.
class Player {
 public:
  explicit Player(const linko::v1::GameStart& start);

  // Answers a request with one of its legal actions.
  linko::v1::Action Decide(const linko::v1::Request& request) const;

 private:
  linko::v1::Ruleset rules_;
};
