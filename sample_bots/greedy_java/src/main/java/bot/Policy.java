package bot;

import static java.util.Comparator.comparing;
import static java.util.Comparator.comparingInt;

import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import linko.v1.Action;
import linko.v1.Choice;
import linko.v1.GameStart;
import linko.v1.Layer;
import linko.v1.Request;
import linko.v1.Ruleset;
import linko.v1.View;

/**
 * Makes the decisions: takes the most cards at every decision, without a plan.
 *
 * <p>Every game has its own instance. A bot that remembers something keeps it in fields of this
 * class.
 */
final class Policy {
    private static final int THIRTEEN = 13;
    private static final int JOKER = 14; // as a card, and as the value of a layer of jokers only

    private static final int MANY_CARDS = 3; // a snatched layer of this size is worth having
    private static final int JOKER_WORTH = 1000; // more than any other card
    private static final int DECK_WORTH = 6; // the card is unknown
    private static final int PASS_WORTH = 99; // below cards held already, above others

    private final Ruleset rules;

    /** Prepares for a game. */
    Policy(GameStart start) {
        rules = start.getRuleset();
    }

    /** Chooses one of the legal actions. */
    Action decide(Request request) {
        View view = request.getView();
        List<Action> legal = request.getLegalList();
        return switch (request.getKind()) {
            case DECISION_KIND_PLAY -> bestPlay(view, legal);
            case DECISION_KIND_TAKE_OR_LEAVE ->
                    choose(isWorthHaving(view) ? Choice.CHOICE_TAKE : Choice.CHOICE_LEAVE);
            case DECISION_KIND_RECLAIM_OR_DISCARD ->
                    choose(isWorthHaving(view) ? Choice.CHOICE_RECLAIM : Choice.CHOICE_DISCARD);
            case DECISION_KIND_DRAW, DECISION_KIND_OPTIONAL_DRAW, DECISION_KIND_GHOST_SET ->
                    mostWorthy(view, legal);
            default -> legal.get(0); // a kind that a later version of the protocol may add
        };
    }

    /** Returns the play with the highest gain, then the fewest jokers, then the highest value. */
    private Action bestPlay(View view, List<Action> legal) {
        Comparator<Layer> order =
                comparingInt((Layer play) -> gain(view, play))
                        .thenComparing(comparingInt(Layer::getJokers).reversed())
                        .thenComparingInt(Layer::getValue);
        return Collections.max(legal, comparing(Action::getPlay, order));
    }

    /** Counts the cards that a play adds to the own table and removes from other tables. */
    private int gain(View view, Layer play) {
        int victims = 0;
        for (int seat = 0; seat < view.getTablesCount(); seat++) {
            List<Layer> layers = view.getTables(seat).getLayersList();
            if (seat == view.getSeat() || layers.isEmpty()) {
                continue;
            }
            if (snatches(play, layers.get(layers.size() - 1))) {
                victims++;
            }
        }
        return size(play) * (1 + victims);
    }

    /** Returns true if a play would snatch the top layer of another seat. */
    private boolean snatches(Layer play, Layer top) {
        if (size(play) != size(top)) {
            return false;
        }
        if (play.getValue() == 1) {
            return top.getValue() == JOKER && rules.getOnesSnatchJokers()
                    || top.getValue() == THIRTEEN && rules.getOnesSnatchThirteens();
        }
        return top.getValue() < play.getValue();
    }

    /** Returns true if the snatched layer is large or matches cards of the hand. */
    private static boolean isWorthHaving(View view) {
        Layer layer = view.getSnatched();
        return size(layer) >= MANY_CARDS || view.getHand(layer.getValue()) >= 1;
    }

    /** Returns the action with the highest worth; of equals, the first one. */
    private static Action mostWorthy(View view, List<Action> legal) {
        Action best = legal.get(0);
        for (Action action : legal) {
            if (worth(view, action) > worth(view, best)) {
                best = action;
            }
        }
        return best;
    }

    /** Rates a draw or a set of the ghost by its best card. */
    private static int worth(View view, Action action) {
        return switch (action.getKindCase()) {
            case DRAW_DISPLAY -> // a single card or a group
                    action.getDrawDisplay().getCardsList().stream()
                            .mapToInt(card -> cardWorth(view, card))
                            .max()
                            .orElse(0);
            case GHOST_VALUE -> cardWorth(view, action.getGhostValue());
            default -> action.getChoice() == Choice.CHOICE_PASS ? PASS_WORTH : DECK_WORTH;
        };
    }

    /** Rates a card: jokers first, then by the number of copies in the hand, then by value. */
    private static int cardWorth(View view, int card) {
        return card == JOKER ? JOKER_WORTH : 100 * view.getHand(card) + card;
    }

    private static int size(Layer layer) {
        return layer.getNaturals() + layer.getJokers();
    }

    private static Action choose(Choice choice) {
        return Action.newBuilder().setChoice(choice).build();
    }
}
