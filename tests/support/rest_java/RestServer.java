import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.paimon.rest.RESTCatalogServer;
import org.apache.paimon.rest.auth.BearTokenAuthProvider;
import org.apache.paimon.rest.responses.ConfigResponse;

/** Java Paimon's own REST catalog server: prints its address, ends when standard input does. */
public class RestServer {
    public static void main(String[] arguments) throws Exception {
        String folder = arguments[0], token = arguments[1], warehouse = arguments[2];
        Map<String, String> defaults = new HashMap<>();
        defaults.put("prefix", "lake");
        RESTCatalogServer server =
                new RESTCatalogServer(
                        folder,
                        new BearTokenAuthProvider(token),
                        new ConfigResponse(defaults, Collections.emptyMap()),
                        warehouse);
        server.start();
        System.out.println(server.getUrl());
        System.out.flush();
        while (System.in.read() >= 0) {}
        server.shutdown();
    }
}
