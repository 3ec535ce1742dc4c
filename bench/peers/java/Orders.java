import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.fs.Path;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.DataTypes;

/** The table that every writer fills. */
class Orders {
  static final Identifier NAME = Identifier.create("bench", "orders");

  private Orders() {}

  /** Table options from arguments NAME=VALUE. */
  static Map<String, String> options(String[] arguments, int from) {
    Map<String, String> options = new LinkedHashMap<>();
    for (int i = from; i < arguments.length; i++) {
      int sign = arguments[i].indexOf('=');
      options.put(arguments[i].substring(0, sign), arguments[i].substring(sign + 1));
    }
    return options;
  }

  static FileStoreTable create(String warehouse, Map<String, String> options) throws Exception {
    Catalog catalog = catalog(warehouse);
    catalog.createDatabase(NAME.getDatabaseName(), true);
    Schema schema =
        Schema.newBuilder()
            .column("order_id", DataTypes.BIGINT().notNull())
            .column("customer_id", DataTypes.BIGINT())
            .column("status", DataTypes.STRING())
            .column("amount", DataTypes.DECIMAL(12, 2))
            .column("note", DataTypes.STRING())
            .column("qty", DataTypes.INT())
            .column("price", DataTypes.DOUBLE())
            .column("created_at", DataTypes.BIGINT())
            .column("updated_at", DataTypes.BIGINT())
            .column("region", DataTypes.STRING())
            .primaryKey("order_id")
            .options(options)
            .build();
    catalog.createTable(NAME, schema, true);
    return (FileStoreTable) catalog.getTable(NAME);
  }

  static Catalog catalog(String warehouse) {
    return CatalogFactory.createCatalog(CatalogContext.create(new Path(warehouse)));
  }
}
