import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.rest.RESTCatalogServer;
import org.apache.paimon.rest.RESTToken;
import org.apache.paimon.rest.auth.BearTokenAuthProvider;
import org.apache.paimon.rest.responses.ConfigResponse;

/**
 * Java Paimon's own REST catalog server: prints its address, ends when standard input does.
 *
 * <p>A line "DATABASE TABLE EXPIRES_AT_MILLIS KEY SECRET" gives a table the token that it hands out.
 */
public class RestServer {
    public static void main(String[] arguments) throws Exception {
        String folder = arguments[0], token = arguments[1], warehouse = arguments[2];
        Map<String, String> defaults = new HashMap<>();
        defaults.put("prefix", "lake");
        defaults.put("data-token.enabled", arguments[3]);
        RESTCatalogServer server =
                new RESTCatalogServer(
                        folder,
                        new BearTokenAuthProvider(token),
                        new ConfigResponse(defaults, Collections.emptyMap()),
                        warehouse);
        server.start();
        System.out.println(server.getUrl());
        System.out.flush();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            Map<String, String> data = new HashMap<>();
            data.put("fs.s3a.access.key", words[3]);
            data.put("fs.s3a.secret.key", words[4]);
            server.setDataToken(
                    Identifier.create(words[0], words[1]),
                    new RESTToken(data, Long.parseLong(words[2])));
            System.out.println("given");
            System.out.flush();
        }
        server.shutdown();
    }
}
