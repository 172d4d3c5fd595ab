package bot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.inprocess.InProcessChannelBuilder;
import io.grpc.inprocess.InProcessServerBuilder;
import io.grpc.stub.StreamObserver;
import java.io.EOFException;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import linko.v1.Action;
import linko.v1.BotMessage;
import linko.v1.DecisionKind;
import linko.v1.GameEnd;
import linko.v1.GameStart;
import linko.v1.Goodbye;
import linko.v1.Hello;
import linko.v1.Layer;
import linko.v1.Ready;
import linko.v1.RefereeMessage;
import linko.v1.RefereeServiceGrpc;
import linko.v1.Reply;
import linko.v1.Request;
import linko.v1.Ruleset;
import linko.v1.Table;
import linko.v1.View;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(10)
class ConversationTest {
    private static final RefereeMessage GOODBYE =
            RefereeMessage.newBuilder().setGoodbye(Goodbye.getDefaultInstance()).build();

    private final Referee referee = new Referee();
    private final Server server =
            InProcessServerBuilder.forName("referee").directExecutor().addService(referee).build();
    private final ManagedChannel channel = InProcessChannelBuilder.forName("referee").build();

    @BeforeEach
    void start() throws Exception {
        server.start();
    }

    @AfterEach
    void stop() {
        channel.shutdownNow();
        server.shutdownNow();
    }

    @Test
    void beginsWithHelloAndEndsWithGoodbye() throws Exception {
        converse(GOODBYE);
        Hello hello = referee.received.take().getHello();
        assertEquals(1, hello.getProtocolVersion());
        assertEquals("secret", hello.getToken());
        assertEquals(Referee.THE_END, referee.received.take());
    }

    @Test
    void answersRequestsOfSeveralGamesInOrderByTheRulesOfEachGame() throws Exception {
        Ruleset expert = Ruleset.newBuilder().setOnesSnatchThirteens(true).build();
        converse(
                RefereeMessage.newBuilder()
                        .addGameStarts(GameStart.newBuilder().setGameId("a").setRuleset(expert))
                        .addGameStarts(GameStart.newBuilder().setGameId("b"))
                        .addRequests(oneOrTwelve("b", 7))
                        .addRequests(oneOrTwelve("a", 3))
                        .build(),
                GOODBYE);
        assertTrue(referee.received.take().hasHello());
        BotMessage expected =
                BotMessage.newBuilder()
                        .addReady(Ready.newBuilder().setGameId("a"))
                        .addReady(Ready.newBuilder().setGameId("b"))
                        .addReplies(reply("b", 7, 12))
                        .addReplies(reply("a", 3, 1))
                        .build();
        assertEquals(expected, referee.received.take());
    }

    @Test
    void sendsNothingWhenAGameEnds() throws Exception {
        converse(
                RefereeMessage.newBuilder()
                        .addGameEnds(GameEnd.newBuilder().setGameId("a"))
                        .build(),
                GOODBYE);
        assertTrue(referee.received.take().hasHello());
        assertEquals(Referee.THE_END, referee.received.take());
    }

    @Test
    void failsWhenTheStreamEndsWithoutGoodbye() {
        assertThrows(EOFException.class, this::converse);
    }

    @Test
    void failsWhenTheStreamBreaks() {
        referee.failure = Status.ALREADY_EXISTS;
        StatusException broken = assertThrows(StatusException.class, this::converse);
        assertEquals(Status.Code.ALREADY_EXISTS, broken.getStatus().getCode());
    }

    private void converse(RefereeMessage... messages) throws Exception {
        referee.messages = List.of(messages);
        new Conversation(RefereeServiceGrpc.newBlockingV2Stub(channel).play()).converse("secret");
    }

    /** An opponent has a 13 on top. Only if 1s snatch 13s, the 1 is better than the 12. */
    private static Request oneOrTwelve(String gameId, int decisionId) {
        Table thirteen = Table.newBuilder().addLayers(layer(13)).build();
        return Request.newBuilder()
                .setGameId(gameId)
                .setDecisionId(decisionId)
                .setKind(DecisionKind.DECISION_KIND_PLAY)
                .setView(
                        View.newBuilder().addTables(Table.getDefaultInstance()).addTables(thirteen))
                .addLegal(Action.newBuilder().setPlay(layer(1)))
                .addLegal(Action.newBuilder().setPlay(layer(12)))
                .build();
    }

    private static Reply reply(String gameId, int decisionId, int value) {
        return Reply.newBuilder()
                .setGameId(gameId)
                .setDecisionId(decisionId)
                .setAction(Action.newBuilder().setPlay(layer(value)))
                .build();
    }

    private static Layer layer(int value) {
        return Layer.newBuilder().setValue(value).setNaturals(1).build();
    }

    /** Sends its messages after the hello and records the messages of the bot. */
    private static final class Referee extends RefereeServiceGrpc.RefereeServiceImplBase {
        static final BotMessage THE_END = BotMessage.getDefaultInstance();

        final BlockingQueue<BotMessage> received = new LinkedBlockingQueue<>();
        List<RefereeMessage> messages = List.of();
        Status failure = Status.OK;

        @Override
        public StreamObserver<BotMessage> play(StreamObserver<RefereeMessage> bot) {
            return new StreamObserver<>() {
                @Override
                public void onNext(BotMessage message) {
                    received.add(message);
                    if (message.hasHello()) {
                        messages.forEach(bot::onNext);
                        if (!messages.contains(GOODBYE)) {
                            closeStream();
                        }
                    }
                }

                private void closeStream() {
                    if (failure.isOk()) {
                        bot.onCompleted();
                    } else {
                        bot.onError(failure.asException());
                    }
                }

                @Override
                public void onError(Throwable cancelled) {}

                @Override
                public void onCompleted() {
                    received.add(THE_END);
                    bot.onCompleted();
                }
            };
        }
    }
}
