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
 * The thinking: grabs the most at every decision and looks no further.
 *
 * <p>Every game has its own instance. A bot with a memory keeps it in fields of this class.
 */
final class Policy {
    private static final int THIRTEEN = 13;
    private static final int JOKER = 14; // as a card, and as the value of a layer of jokers only

    private static final int MANY_CARDS = 3; // a snatched layer of this size is worth having
    private static final int JOKER_WORTH = 1000; // more than any other card
    private static final int DECK_WORTH = 6; // an unknown card
    private static final int PASS_WORTH = 99; // less than any card held already, more than others

    private final Ruleset rules;

    /** Gets ready for a game. */
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

    /** The play with the highest gain; of equals the fewest jokers, then the highest value. */
    private Action bestPlay(View view, List<Action> legal) {
        Comparator<Layer> order =
                comparingInt((Layer play) -> gain(view, play))
                        .thenComparing(comparingInt(Layer::getJokers).reversed())
                        .thenComparingInt(Layer::getValue);
        return Collections.max(legal, comparing(Action::getPlay, order));
    }

    /** How many cards a play brings to the own table and takes off those of others. */
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

    /** Whether a play would snatch the top layer of another seat. */
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

    /** Whether the snatched layer would make a good layer in the own hand. */
    private static boolean isWorthHaving(View view) {
        Layer layer = view.getSnatched();
        return size(layer) >= MANY_CARDS || view.getHand(layer.getValue()) >= 1;
    }

    /** The action that brings the most worthy card; of equals the one that is named first. */
    private static Action mostWorthy(View view, List<Action> legal) {
        Action best = legal.get(0);
        for (Action action : legal) {
            if (worth(view, action) > worth(view, best)) {
                best = action;
            }
        }
        return best;
    }

    /** What a draw or a set of the ghost is worth. */
    private static int worth(View view, Action action) {
        return switch (action.getKindCase()) {
            case DRAW_DISPLAY -> // a card, or a group, which counts as its best card
                    action.getDrawDisplay().getCardsList().stream()
                            .mapToInt(card -> cardWorth(view, card))
                            .max()
                            .orElse(0);
            case GHOST_VALUE -> cardWorth(view, action.getGhostValue());
            default -> action.getChoice() == Choice.CHOICE_PASS ? PASS_WORTH : DECK_WORTH;
        };
    }

    /** Jokers first, then what the hand has most of, then the higher card. */
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
