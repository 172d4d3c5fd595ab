package bot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.google.protobuf.TextFormat;
import com.google.protobuf.TextFormat.ParseException;
import java.util.stream.Stream;
import linko.v1.Action;
import linko.v1.GameStart;
import linko.v1.Request;
import linko.v1.Ruleset;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests the policy with examples: a ruleset and a request as texts, and the expected action. */
class PolicyTest {
    @ParameterizedTest(name = "{0}")
    @MethodSource({"plays", "snatchedLayers", "draws", "otherDecisions"})
    void decides(String example, String rules, String request, String expected)
            throws ParseException {
        GameStart start =
                GameStart.newBuilder().setRuleset(TextFormat.parse(rules, Ruleset.class)).build();
        Action action = new Policy(start).decide(TextFormat.parse(request, Request.class));
        assertEquals(TextFormat.parse(expected, Action.class), action);
    }

    static Stream<Arguments> plays() {
        String againstThirteen =
                """
                kind: DECISION_KIND_PLAY
                view { tables {} tables { layers { value: 13 naturals: 1 } } }
                legal { play { value: 1 naturals: 1 } }
                legal { play { value: 12 naturals: 1 } }
                """;
        String againstJokers =
                """
                kind: DECISION_KIND_PLAY
                view { tables {} tables { layers { value: 14 jokers: 2 } } }
                legal { play { value: 1 naturals: 1 jokers: 1 } }
                legal { play { value: 12 naturals: 3 } }
                """;
        return Stream.of(
                arguments(
                        "a victim counts as much as a card",
                        "",
                        """
                        kind: DECISION_KIND_PLAY
                        view {
                          tables {}
                          tables { layers { value: 2 naturals: 1 } }
                          tables { layers { value: 1 naturals: 1 } }
                        }
                        legal { play { value: 3 naturals: 1 } }
                        legal { play { value: 9 naturals: 1 } }
                        legal { play { value: 9 naturals: 2 } }
                        """,
                        "play { value: 9 naturals: 1 }"),
                arguments(
                        "of equal gains the fewest jokers are played",
                        "",
                        """
                        kind: DECISION_KIND_PLAY
                        view { tables {} tables {} }
                        legal { play { value: 2 naturals: 2 } }
                        legal { play { value: 9 naturals: 1 jokers: 1 } }
                        legal { play { value: 14 jokers: 2 } }
                        """,
                        "play { value: 2 naturals: 2 }"),
                arguments(
                        "of equal gains and jokers the highest value is played",
                        "",
                        """
                        kind: DECISION_KIND_PLAY
                        view { tables {} tables {} }
                        legal { play { value: 7 naturals: 2 } }
                        legal { play { value: 7 naturals: 2 jokers: 1 } }
                        legal { play { value: 12 naturals: 2 } }
                        legal { play { value: 12 naturals: 2 jokers: 1 } }
                        legal { play { value: 14 jokers: 1 } }
                        """,
                        "play { value: 12 naturals: 2 jokers: 1 }"),
                arguments(
                        "only top layers of other seats are snatched",
                        "",
                        """
                        kind: DECISION_KIND_PLAY
                        view {
                          seat: 1
                          tables {
                            layers { value: 1 naturals: 1 }
                            layers { value: 1 naturals: 3 }
                          }
                          tables { layers { value: 1 naturals: 1 } }
                        }
                        legal { play { value: 8 naturals: 1 } }
                        legal { play { value: 8 naturals: 2 } }
                        """,
                        "play { value: 8 naturals: 2 }"),
                arguments(
                        "1s snatch 13s if the rules say so",
                        "ones_snatch_thirteens: true",
                        againstThirteen,
                        "play { value: 1 naturals: 1 }"),
                arguments(
                        "1s do not snatch 13s by other rules",
                        "ones_snatch_jokers: true",
                        againstThirteen,
                        "play { value: 12 naturals: 1 }"),
                arguments(
                        "1s snatch jokers if the rules say so",
                        "ones_snatch_jokers: true",
                        againstJokers,
                        "play { value: 1 naturals: 1 jokers: 1 }"),
                arguments(
                        "1s do not snatch jokers by other rules",
                        "ones_snatch_thirteens: true",
                        againstJokers,
                        "play { value: 12 naturals: 3 }"));
    }

    static Stream<Arguments> snatchedLayers() {
        return Stream.of(
                arguments(
                        "a card whose value is held already is taken",
                        "",
                        """
                        kind: DECISION_KIND_TAKE_OR_LEAVE
                        view {
                          hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
                          snatched { value: 4 naturals: 1 }
                        }
                        legal { choice: CHOICE_TAKE }
                        legal { choice: CHOICE_LEAVE }
                        """,
                        "choice: CHOICE_TAKE"),
                arguments(
                        "two cards whose value is not held are left",
                        "",
                        """
                        kind: DECISION_KIND_TAKE_OR_LEAVE
                        view {
                          hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
                          snatched { value: 9 naturals: 2 }
                        }
                        legal { choice: CHOICE_TAKE }
                        legal { choice: CHOICE_LEAVE }
                        """,
                        "choice: CHOICE_LEAVE"),
                arguments(
                        "three cards, jokers included, are reclaimed",
                        "",
                        """
                        kind: DECISION_KIND_RECLAIM_OR_DISCARD
                        view {
                          hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
                          snatched { value: 9 naturals: 2 jokers: 1 }
                        }
                        legal { choice: CHOICE_RECLAIM }
                        legal { choice: CHOICE_DISCARD }
                        """,
                        "choice: CHOICE_RECLAIM"),
                arguments(
                        "a joker is discarded if there is none in the hand",
                        "",
                        """
                        kind: DECISION_KIND_RECLAIM_OR_DISCARD
                        view {
                          hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
                          snatched { value: 14 jokers: 1 }
                        }
                        legal { choice: CHOICE_RECLAIM }
                        legal { choice: CHOICE_DISCARD }
                        """,
                        "choice: CHOICE_DISCARD"));
    }

    static Stream<Arguments> draws() {
        return Stream.of(
                arguments(
                        "the card that is held most often is drawn",
                        "",
                        """
                        kind: DECISION_KIND_DRAW
                        view { hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] }
                        legal { choice: CHOICE_DRAW_DECK }
                        legal { draw_display { slot: 0 cards: 13 } }
                        legal { draw_display { slot: 1 cards: 10 } }
                        legal { draw_display { slot: 2 cards: 4 } }
                        """,
                        "draw_display { slot: 2 cards: 4 }"),
                arguments(
                        "of equals the first is drawn: the deck is worth a 6",
                        "",
                        """
                        kind: DECISION_KIND_DRAW
                        view { hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] }
                        legal { choice: CHOICE_DRAW_DECK }
                        legal { draw_display { slot: 0 cards: 6 } }
                        legal { draw_display { slot: 1 cards: 5 } }
                        legal { draw_display { slot: 2 cards: 3 } }
                        """,
                        "choice: CHOICE_DRAW_DECK"),
                arguments(
                        "a group is worth its best card, and jokers are the best",
                        "",
                        """
                        kind: DECISION_KIND_DRAW
                        view { hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] }
                        legal { choice: CHOICE_DRAW_DECK }
                        legal { draw_display { slot: 0 cards: 4 } }
                        legal { draw_display { slot: 3 cards: [2, 14, 13] } }
                        """,
                        "draw_display { slot: 3 cards: [2, 14, 13] }"),
                arguments(
                        "an optional draw of a card that is not held is declined",
                        "",
                        """
                        kind: DECISION_KIND_OPTIONAL_DRAW
                        view { hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] }
                        legal { choice: CHOICE_PASS }
                        legal { choice: CHOICE_DRAW_DECK }
                        legal { draw_display { slot: 0 cards: 13 } }
                        legal { draw_display { slot: 1 cards: 12 } }
                        legal { draw_display { slot: 2 cards: 5 } }
                        """,
                        "choice: CHOICE_PASS"),
                arguments(
                        "an optional draw of a card that is held is taken",
                        "",
                        """
                        kind: DECISION_KIND_OPTIONAL_DRAW
                        view { hand: [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }
                        legal { choice: CHOICE_PASS }
                        legal { choice: CHOICE_DRAW_DECK }
                        legal { draw_display { slot: 0 cards: 13 } }
                        legal { draw_display { slot: 1 cards: 1 } }
                        """,
                        "draw_display { slot: 1 cards: 1 }"));
    }

    static Stream<Arguments> otherDecisions() {
        return Stream.of(
                arguments(
                        "the ghost's set that is held most often is snatched",
                        "",
                        """
                        kind: DECISION_KIND_GHOST_SET
                        view { hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] }
                        legal { ghost_value: 3 }
                        legal { ghost_value: 4 }
                        legal { ghost_value: 10 }
                        legal { ghost_value: 12 }
                        """,
                        "ghost_value: 4"),
                arguments(
                        "a snatch from the ghost of cards that are not held is declined",
                        "",
                        """
                        kind: DECISION_KIND_GHOST_SET
                        view { hand: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] }
                        legal { ghost_value: 3 }
                        legal { ghost_value: 12 }
                        legal { choice: CHOICE_PASS }
                        """,
                        "choice: CHOICE_PASS"),
                arguments(
                        "an optional snatch from the ghost of cards that are held is made",
                        "",
                        """
                        kind: DECISION_KIND_GHOST_SET
                        view { hand: [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }
                        legal { ghost_value: 3 }
                        legal { choice: CHOICE_PASS }
                        """,
                        "ghost_value: 3"),
                arguments(
                        "an unknown kind of decision gets the first action",
                        "",
                        """
                        kind: 99
                        legal { ghost_value: 1 }
                        legal { ghost_value: 10 }
                        """,
                        "ghost_value: 1"));
    }
}
