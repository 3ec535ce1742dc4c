import java.io.IOException;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerExtensionsValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Takes tokens of Amazon MSK that are signed with one key, whose two halves are options of the login
 * module: computes Signature Version 4 of the presigned request again, from its public description.
 */
public final class MskTokenValidator implements AuthenticateCallbackHandler {
    private static final DateTimeFormatter STAMP =
        DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
    private String accessKey;
    private String secretKey;

    @Override
    public void configure(
        Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        accessKey = (String) entries.get(0).getOptions().get("access_key");
        secretKey = (String) entries.get(0).getOptions().get("secret_key");
    }

    @Override
    public void handle(Callback[] callbacks) throws IOException, UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerValidatorCallback token) {
                try {
                    token.token(validated(token.tokenValue()));
                } catch (IllegalArgumentException | GeneralSecurityException error) {
                    token.error("invalid_token: " + error.getMessage(), null, null);
                }
            } else if (callback instanceof OAuthBearerExtensionsValidatorCallback extensions) {
                extensions.inputExtensions().map().keySet().forEach(extensions::valid);
            } else {
                throw new UnsupportedCallbackException(callback);
            }
        }
    }

    @Override
    public void close() {}

    private OAuthBearerToken validated(String text) throws GeneralSecurityException {
        URI url = URI.create(new String(Base64.getUrlDecoder().decode(text), StandardCharsets.UTF_8));
        TreeMap<String, String> raw = new TreeMap<>();
        for (String pair : url.getRawQuery().split("&")) {
            raw.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
        }
        require(decoded(raw.get("Action")).equals("kafka-cluster:Connect"), "the action");
        require(raw.get("X-Amz-Algorithm").equals("AWS4-HMAC-SHA256"), "the algorithm");
        require(raw.get("X-Amz-SignedHeaders").equals("host"), "the signed headers");
        require(raw.get("User-Agent") != null, "the user agent");
        String[] scope = decoded(raw.get("X-Amz-Credential")).split("/");
        require(scope.length == 5 && scope[0].equals(accessKey), "the access key");
        require(scope[3].equals("kafka-cluster") && scope[4].equals("aws4_request"), "the scope");
        require(url.getHost().equals("kafka." + scope[2] + ".amazonaws.com"), "the host");
        String signature = raw.remove("X-Amz-Signature");
        raw.remove("User-Agent");
        require(signature.equals(signed(url, raw, scope)), "the signature");
        Instant begin = Instant.from(STAMP.parse(raw.get("X-Amz-Date")));
        Instant end = begin.plusSeconds(Long.parseLong(raw.get("X-Amz-Expires")));
        Instant now = Instant.now();
        require(!begin.isAfter(now.plusSeconds(5)) && end.isAfter(now), "the time");
        return new Token(text, begin.toEpochMilli(), end.toEpochMilli(), accessKey);
    }

    private String signed(URI url, TreeMap<String, String> query, String[] scope)
        throws GeneralSecurityException {
        String joined = query.entrySet().stream()
            .map(pair -> pair.getKey() + "=" + pair.getValue())
            .collect(Collectors.joining("&"));
        String request = String.join("\n", "GET", url.getPath(), joined, "host:" + url.getHost(),
            "", "host", hex(digest("")));
        String where = String.join("/", scope[1], scope[2], scope[3], scope[4]);
        String text = String.join("\n", "AWS4-HMAC-SHA256", query.get("X-Amz-Date"), where,
            hex(digest(request)));
        byte[] key = ("AWS4" + secretKey).getBytes(StandardCharsets.UTF_8);
        for (String part : where.split("/")) {
            key = mac(key, part);
        }
        return hex(mac(key, text));
    }

    private static byte[] digest(String text) throws GeneralSecurityException {
        return MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] mac(byte[] key, String text) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new IllegalArgumentException(what + " of the token is wrong");
        }
    }

    private record Token(String value, Long startTimeMs, long lifetimeMs, String principalName)
        implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }
    }
}
