import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.math.BigDecimal;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.types.RowKind;

/** A change event to its row: the image after, or of a delete the one before. */
class RowParser {
  private static final int COLUMNS = 10;

  private RowParser() {}

  static GenericRow parse(JsonFactory json, byte[] value) throws IOException {
    for (String image : new String[] {"after", "before"}) {
      try (JsonParser parser = json.createParser(value)) {
        parser.nextToken();
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
          boolean wanted = parser.currentName().equals(image);
          JsonToken token = parser.nextToken();
          if (wanted && token == JsonToken.START_OBJECT) {
            return row(parser, image.equals("after") ? RowKind.INSERT : RowKind.DELETE);
          }
          parser.skipChildren();
        }
      }
    }
    throw new IllegalArgumentException("a change event without a row");
  }

  private static GenericRow row(JsonParser parser, RowKind kind) throws IOException {
    GenericRow row = new GenericRow(kind, COLUMNS);
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      String name = parser.currentName();
      if (parser.nextToken() == JsonToken.VALUE_NULL) {
        continue;
      }
      switch (name) {
        case "order_id" -> row.setField(0, parser.getLongValue());
        case "customer_id" -> row.setField(1, parser.getLongValue());
        case "status" -> row.setField(2, BinaryString.fromString(parser.getText()));
        case "amount" ->
            row.setField(3, Decimal.fromBigDecimal(new BigDecimal(parser.getText()), 12, 2));
        case "note" -> row.setField(4, BinaryString.fromString(parser.getText()));
        case "qty" -> row.setField(5, parser.getIntValue());
        case "price" -> row.setField(6, parser.getDoubleValue());
        case "created_at" -> row.setField(7, parser.getLongValue());
        case "updated_at" -> row.setField(8, parser.getLongValue());
        case "region" -> row.setField(9, BinaryString.fromString(parser.getText()));
        default -> parser.skipChildren();
      }
    }
    return row;
  }
}
