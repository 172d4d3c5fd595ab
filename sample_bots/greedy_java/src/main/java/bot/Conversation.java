package bot;

import io.grpc.StatusException;
import io.grpc.stub.BlockingClientCall;
import java.io.EOFException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import linko.v1.BotMessage;
import linko.v1.GameEnd;
import linko.v1.GameStart;
import linko.v1.Hello;
import linko.v1.Ready;
import linko.v1.RefereeMessage;
import linko.v1.Reply;
import linko.v1.Request;

/** Exchanges messages with the referee, from the hello to the goodbye. */
final class Conversation {
    private static final int PROTOCOL_VERSION = 1;
    private static final int MAX_GAMES = 64; // games that the bot can play at the same time
    private static final int WRITE_LIMIT_MS = 500; // the referee sends SIGTERM 2 s after its goodbye

    private final BlockingClientCall<BotMessage, RefereeMessage> stream;
    private final Map<String, Policy> games = new HashMap<>(); // games in progress, by game id
    private boolean isBroken; // whether a write has failed; a goodbye may still be unread

    Conversation(BlockingClientCall<BotMessage, RefereeMessage> stream) {
        this.stream = stream;
    }

    /**
     * Answers messages until the referee sends its goodbye.
     *
     * @throws StatusException if the stream breaks
     * @throws EOFException if the stream ends without a goodbye
     */
    void converse(String token) throws StatusException, EOFException, InterruptedException {
        stream.write(hello(token));
        RefereeMessage message;
        do {
            message = stream.read();
            if (message == null) {
                throw new EOFException("the stream ended without a goodbye");
            }
            if (!isBroken) {
                send(answer(message));
            }
        } while (!message.hasGoodbye());
        stream.halfClose();
        String reason = message.getGoodbye().getReason();
        if (!reason.isEmpty()) {
            System.err.println("goodbye: " + reason);
        }
    }

    /** Sends a message, unless it is empty. A write fails when the stream has ended. */
    private void send(BotMessage answer) throws InterruptedException {
        if (answer.equals(BotMessage.getDefaultInstance())) {
            return;
        }
        try {
            isBroken = !stream.write(answer, WRITE_LIMIT_MS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException | StatusException ended) {
            isBroken = true; // the next reads return what is unread, or throw the reason
        }
    }

    private static BotMessage hello(String token) {
        Hello hello =
                Hello.newBuilder()
                        .setProtocolVersion(PROTOCOL_VERSION)
                        .setToken(token)
                        .setName("linko-bot")
                        .setMaxGames(MAX_GAMES)
                        .build();
        return BotMessage.newBuilder().setHello(hello).build();
    }

    /** Returns a Ready for each game start and a Reply for each request, in order. */
    private BotMessage answer(RefereeMessage message) {
        BotMessage.Builder answer = BotMessage.newBuilder();
        for (GameStart start : message.getGameStartsList()) {
            games.put(start.getGameId(), new Policy(start));
            answer.addReady(Ready.newBuilder().setGameId(start.getGameId()));
        }
        for (Request request : message.getRequestsList()) {
            answer.addReplies(
                    Reply.newBuilder()
                            .setGameId(request.getGameId())
                            .setDecisionId(request.getDecisionId())
                            .setAction(games.get(request.getGameId()).decide(request)));
        }
        for (GameEnd end : message.getGameEndsList()) {
            games.remove(end.getGameId());
        }
        return answer.build();
    }
}
