// The decisions of the bot. To write your own bot, change this file and policy.cpp.

#pragma once

#include "linko/v1/play.pb.h"
#include "linko/v1/table.pb.h"

// Plays one seat of one game. Several games can be in progress at the same time, and each has its
// own player. To remember something within a game, add a member.
class Player {
 public:
  explicit Player(const linko::v1::GameStart& start);

  // Returns one of the legal actions of a request.
  linko::v1::Action Decide(const linko::v1::Request& request) const;

 private:
  linko::v1::Ruleset rules_;
};
