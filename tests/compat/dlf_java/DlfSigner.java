import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.paimon.rest.auth.DLFDefaultSigner;
import org.apache.paimon.rest.auth.DLFOpenApiSigner;
import org.apache.paimon.rest.auth.DLFRequestSigner;
import org.apache.paimon.rest.auth.DLFToken;
import org.apache.paimon.rest.auth.RESTAuthParameter;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** Signs each request, one JSON object a line, and prints the headers that Java adds to it. */
public class DlfSigner {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode given = mapper.readTree(line);
            DLFRequestSigner signer =
                    given.get("signature").asText().equals("openapi")
                            ? new DLFOpenApiSigner()
                            : new DLFDefaultSigner(given.get("region").asText());
            Map<String, String> parameters = new LinkedHashMap<>();
            given.get("parameters")
                    .fields()
                    .forEachRemaining(one -> parameters.put(one.getKey(), one.getValue().asText()));
            String host = given.get("host").asText();
            String body = text(given, "body"), session = text(given, "session_token");
            DLFToken key =
                    new DLFToken(text(given, "key_id"), text(given, "secret"), session, null);
            Instant now = Instant.ofEpochSecond(given.get("at").asLong());
            Map<String, String> headers =
                    new HashMap<>(signer.signHeaders(body, now, session, host));
            RESTAuthParameter request =
                    new RESTAuthParameter(
                            text(given, "path"), parameters, text(given, "method"), body);
            headers.put("Authorization", signer.authorization(request, key, host, headers));
            System.out.println(mapper.writeValueAsString(new TreeMap<>(headers)));
        }
    }

    private static String text(JsonNode given, String name) {
        JsonNode value = given.get(name);
        return value.isNull() ? null : value.asText();
    }
}
