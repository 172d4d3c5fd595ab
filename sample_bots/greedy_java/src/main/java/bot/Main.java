package bot;

import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.StatusException;
import java.io.EOFException;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import linko.v1.RefereeServiceGrpc;

/** Where the bot starts: connects to the referee, and exits when all has been said. */
public final class Main {
    // Kept here because a logger that nobody holds forgets its level.
    private static final Logger NETTY_BOOTSTRAP =
            Logger.getLogger("io.grpc.netty.shaded.io.netty.bootstrap");

    private Main() {}

    /** Exits with code 0 after a goodbye, with 2 where no referee is named, and else with 1. */
    public static void main(String[] args) throws InterruptedException {
        String address = System.getenv("REFEREE_ADDRESS");
        String token = System.getenv("REFEREE_TOKEN");
        if (address == null || token == null) {
            System.err.println(
                    "REFEREE_ADDRESS or REFEREE_TOKEN is missing: the referee starts this bot,"
                            + " try `referee play . path/to/another`");
            System.exit(2);
        }
        prepareNetty();
        ManagedChannel channel =
                Grpc.newChannelBuilder(address, InsecureChannelCredentials.create()).build();
        try {
            new Conversation(RefereeServiceGrpc.newBlockingV2Stub(channel).play()).hold(token);
        } catch (StatusException | EOFException broken) {
            String cause = broken.getCause() == null ? "" : ", because of " + broken.getCause();
            System.err.println(broken.getMessage() + cause);
            System.exit(1);
        }
        channel.shutdown().awaitTermination(1, TimeUnit.SECONDS);
    }

    /** Netty, below gRPC, is what connects to the UNIX socket. */
    private static void prepareNetty() {
        // It unpacks a native library into Java's folder for temporary files, which is not TMPDIR.
        String temporary = System.getenv("TMPDIR");
        if (temporary != null) {
            System.setProperty("java.io.tmpdir", temporary);
        }
        // It warns of an option that gRPC sets and UNIX sockets do not have.
        NETTY_BOOTSTRAP.setLevel(Level.SEVERE);
    }
}
