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

/** Starts the bot: connects to the referee, plays, and exits after the goodbye. */
public final class Main {
    // Kept in a field, because an unreferenced logger loses its level.
    private static final Logger NETTY_BOOTSTRAP =
            Logger.getLogger("io.grpc.netty.shaded.io.netty.bootstrap");

    private Main() {}

    /** Exits with code 0 after a goodbye, 2 if no referee started the program, and 1 otherwise. */
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
            new Conversation(RefereeServiceGrpc.newBlockingV2Stub(channel).play()).converse(token);
        } catch (StatusException | EOFException broken) {
            String cause = broken.getCause() == null ? "" : ", because of " + broken.getCause();
            System.err.println(broken.getMessage() + cause);
            System.exit(1);
        }
        channel.shutdown().awaitTermination(1, TimeUnit.SECONDS);
    }

    /** Configures Netty, the library that gRPC uses to connect to the UNIX socket. */
    private static void prepareNetty() {
        // Netty unpacks a native library into java.io.tmpdir, which does not follow TMPDIR.
        String temporary = System.getenv("TMPDIR");
        if (temporary != null) {
            System.setProperty("java.io.tmpdir", temporary);
        }
        // Netty would warn about an option that gRPC sets and UNIX sockets do not have.
        NETTY_BOOTSTRAP.setLevel(Level.SEVERE);
    }
}
