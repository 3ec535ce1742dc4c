import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.RESTCatalogProperties;
import org.apache.iceberg.rest.RESTSerializers;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ConfigResponse;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.JsonAutoDetect;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.PropertyAccessor;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.PropertyNamingStrategies;

/**
 * A REST catalog of Iceberg's own request handlers over a catalog in memory; arguments: warehouse, token. It serves
 * one warehouse, "lake", below the prefix of this name, prints its address, and ends with its input.
 */
public class IcebergRestServer {

    static final ObjectMapper JSON = new ObjectMapper();
    static final InMemoryCatalog CATALOG = new InMemoryCatalog();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        JSON.setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY);
        JSON.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
        JSON.setPropertyNamingStrategy(new PropertyNamingStrategies.KebabCaseStrategy());
        RESTSerializers.registerAll(JSON);
        CATALOG.initialize("lake", Map.of("warehouse", args[0], "io-impl", "org.apache.iceberg.hadoop.HadoopFileIO"));
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> answer(exchange, "Bearer " + args[1]));
        server.start();
        out.println("http://127.0.0.1:" + server.getAddress().getPort());
        while (System.in.read() >= 0) {}
        server.stop(0);
    }

    static void answer(HttpExchange exchange, String token) {
        int status = 200;
        Object reply;
        try {
            if (!token.equals(exchange.getRequestHeaders().getFirst("Authorization")))
                throw new SecurityException("another token");
            String[] path = exchange.getRequestURI().getRawPath().substring(1).split("/");
            for (int at = 0; at < path.length; at++)
                path[at] = URLDecoder.decode(path[at], StandardCharsets.UTF_8);
            reply = handle(exchange.getRequestMethod(), path, exchange);
        } catch (Exception e) {
            status = status(e);
            reply = ErrorResponse.builder()
                    .responseCode(status).withType(e.getClass().getSimpleName()).withMessage(e.getMessage()).build();
        }
        try (exchange) {
            byte[] body = reply == null ? new byte[0] : JSON.writeValueAsBytes(reply);
            exchange.getResponseHeaders().add("Content-Type", "application/json");
            exchange.sendResponseHeaders(reply == null ? 204 : status, reply == null ? -1 : body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception e) {
            e.printStackTrace();
        }
    }

    static int status(Exception e) {
        if (e instanceof SecurityException) return 401;
        if (e instanceof NoSuchTableException || e instanceof NoSuchNamespaceException) return 404;
        if (e instanceof AlreadyExistsException || e instanceof CommitFailedException) return 409;
        return 400;
    }

    /** Paths: v1/config, v1/lake/namespaces, then /NAMESPACE, /tables, /TABLE. */
    static Object handle(String method, String[] path, HttpExchange exchange) throws Exception {
        if (path[1].equals("config")) {
            if (!"warehouse=lake".equals(exchange.getRequestURI().getQuery()))
                throw new NoSuchNamespaceException("no such warehouse");
            return ConfigResponse.builder().withOverride("prefix", "lake").build();
        }
        if (path.length == 3)
            return CatalogHandlers.createNamespace(CATALOG, body(exchange, CreateNamespaceRequest.class));
        Namespace namespace = Namespace.of(path[3]);
        if (path.length == 4) return CatalogHandlers.loadNamespace(CATALOG, namespace);
        if (path.length == 5) {
            CreateTableRequest request = body(exchange, CreateTableRequest.class);
            return request.stageCreate()
                    ? CatalogHandlers.stageTableCreate(CATALOG, namespace, request)
                    : CatalogHandlers.createTable(CATALOG, namespace, request);
        }
        TableIdentifier table = TableIdentifier.of(namespace, path[5]);
        switch (method) {
            case "POST":
                return CatalogHandlers.updateTable(CATALOG, table, body(exchange, UpdateTableRequest.class));
            case "DELETE":
                CatalogHandlers.dropTable(CATALOG, table);
                return null;
            case "HEAD":
                CatalogHandlers.tableExists(CATALOG, table);
                return null;
            default:
                return CatalogHandlers.loadTable(CATALOG, table, RESTCatalogProperties.SnapshotMode.ALL);
        }
    }

    static <T> T body(HttpExchange exchange, Class<T> type) throws Exception {
        return JSON.readValue(exchange.getRequestBody(), type);
    }
}
