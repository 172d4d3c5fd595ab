//! Keeps the games in progress, by game id.

use std::collections::HashMap;

use crate::linko::{BotMessage, Ready, RefereeMessage, Reply};
use crate::policy::Game;

#[derive(Default)]
pub struct Games(HashMap<String, Game>);

impl Games {
    /// Handles a message of the referee. Returns a `Ready` for each game start and a `Reply` for
    /// each request, in order, or `None` if the message needs no answer.
    pub fn answer(&mut self, message: RefereeMessage) -> Option<BotMessage> {
        let mut answer = BotMessage::default();
        for start in message.game_starts {
            let game_id = start.game_id.clone();
            self.0.insert(game_id.clone(), Game::new(start));
            answer.ready.push(Ready { game_id });
        }
        for request in message.requests {
            let game = self
                .0
                .get_mut(&request.game_id)
                .expect("a game starts before its first request");
            answer.replies.push(Reply {
                action: Some(game.decide(&request)),
                game_id: request.game_id,
                decision_id: request.decision_id,
            });
        }
        for end in message.game_ends {
            self.0.remove(&end.game_id);
        }
        (answer != BotMessage::default()).then_some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linko::action::Kind::Play;
    use crate::linko::{
        Action, DecisionKind, GameEnd, GameStart, Layer, Request, Ruleset, Table, View,
    };

    fn single(value: u32) -> Layer {
        Layer {
            value,
            naturals: 1,
            jokers: 0,
        }
    }

    fn play(value: u32) -> Action {
        Action {
            kind: Some(Play(single(value))),
        }
    }

    fn start(game_id: &str, ones_snatch_thirteens: bool) -> GameStart {
        GameStart {
            game_id: game_id.into(),
            ruleset: Some(Ruleset {
                ones_snatch_thirteens,
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    /// A request in which seat 0 may play a 1 or a 12 against a 13.
    fn request(game_id: &str, decision_id: u32) -> Request {
        Request {
            game_id: game_id.into(),
            decision_id,
            kind: DecisionKind::Play.into(),
            view: Some(View {
                tables: vec![
                    Table::default(),
                    Table {
                        layers: vec![single(13)],
                    },
                ],
                ..Default::default()
            }),
            legal: vec![play(1), play(12)],
            ..Default::default()
        }
    }

    fn ready(game_id: &str) -> Ready {
        Ready {
            game_id: game_id.into(),
        }
    }

    fn reply(game_id: &str, decision_id: u32, value: u32) -> Reply {
        Reply {
            game_id: game_id.into(),
            decision_id,
            action: Some(play(value)),
        }
    }

    #[test]
    fn requests_of_several_games_are_answered_in_order_by_the_rules_of_each_game() {
        let message = RefereeMessage {
            game_starts: vec![start("a", true), start("b", false)],
            requests: vec![request("b", 7), request("a", 3)],
            ..Default::default()
        };
        let answer = BotMessage {
            ready: vec![ready("a"), ready("b")],
            replies: vec![reply("b", 7, 12), reply("a", 3, 1)],
            ..Default::default()
        };
        assert_eq!(Games::default().answer(message), Some(answer));
    }

    #[test]
    fn finished_game_is_forgotten_without_an_answer() {
        let mut games = Games::default();
        games.answer(RefereeMessage {
            game_starts: vec![start("a", true), start("b", false)],
            ..Default::default()
        });
        let over = RefereeMessage {
            game_ends: vec![GameEnd {
                game_id: "a".into(),
                ..Default::default()
            }],
            ..Default::default()
        };
        assert_eq!(games.answer(over), None);
        assert_eq!(games.0.keys().collect::<Vec<_>>(), ["b"]);
    }
}
