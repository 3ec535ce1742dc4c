import com.google.protobuf.DescriptorProtos.*;
import com.google.protobuf.Descriptors.*;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serializer;

public final class Capture {
    static void put(String name, Serializer<Object> s, String topic, boolean key, Object data) {
        RecordHeaders headers = new RecordHeaders();
        byte[] out;
        try {
        out = s.serialize(topic, headers, data);
        } catch (Exception e) { System.out.println("{\"case\": \"" + name + "\", \"error\": \"" + e.toString().replace('"','\'').replace('\n',' ') + "\"}"); e.printStackTrace(); return; }
        StringBuilder b = new StringBuilder("{\"case\": \"" + name + "\", \"topic\": \"" + topic + "\", \"key\": " + key + ", \"bytes\": \"" + HexFormat.of().formatHex(out) + "\", \"headers\": {");
        String sep = "";
        for (Header h : headers) { b.append(sep).append("\"").append(h.key()).append("\": \"").append(HexFormat.of().formatHex(h.value())).append("\""); sep = ", "; }
        System.out.println(b.append("}}"));
    }
    @SuppressWarnings("unchecked")
    static Serializer<Object> make(String cls, Map<String, Object> config, boolean key) throws Exception {
        Serializer<Object> s = (Serializer<Object>) (Serializer<?>) Class.forName(cls).getDeclaredConstructor().newInstance();
        s.configure(config, key);
        return s;
    }
    public static void main(String[] a) throws Exception {
        String url = a[0];
        Map<String, Object> base = new HashMap<>(Map.of("apicurio.registry.url", url, "apicurio.registry.auto-register", "true", "apicurio.registry.auto-register.if-exists", a[1], "apicurio.registry.headers.enabled", "false"));
        Map<String, Map<String, Object>> modes = new LinkedHashMap<>();
        modes.put("default", Map.of());
        modes.put("content", Map.of("apicurio.registry.use-id", "contentId"));
        modes.put("global", Map.of("apicurio.registry.use-id", "globalId"));
        modes.put("global8", Map.of("apicurio.registry.use-id", "globalId", "apicurio.registry.id-handler", a[2]));
        modes.put("headers", Map.of("apicurio.registry.headers.enabled", "true"));
        modes.put("headersGlobal", Map.of("apicurio.registry.headers.enabled", "true", "apicurio.registry.use-id", "globalId"));
        modes.put("jsonEncoding", Map.of("apicurio.registry.headers.enabled", "true", "apicurio.registry.avro.encoding", "JSON"));
        Schema money = new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"Money\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"currency\",\"type\":\"string\"},{\"name\":\"cents\",\"type\":\"long\"}]}");
        Schema item = Schema.createRecord("Item", "Items of the shop.", "shop", false, List.of(
            new Schema.Field("id", Schema.create(Schema.Type.INT), null, null),
            new Schema.Field("name", Schema.create(Schema.Type.STRING), "shown to customers", null),
            new Schema.Field("price", money, null, null)));
        Schema itemKey = Schema.createRecord("ItemKey", null, "shop", false, List.of(new Schema.Field("id", Schema.create(Schema.Type.INT), null, null)));
        FileDescriptorProto mp = FileDescriptorProto.newBuilder().setName("shop/money.proto").setPackage("shop").setSyntax("proto3").setOptions(FileOptions.newBuilder().setJavaPackage("cap"))
            .addMessageType(DescriptorProto.newBuilder().setName("Money").addField(f("currency", 1, FieldDescriptorProto.Type.TYPE_STRING)).addField(f("cents", 2, FieldDescriptorProto.Type.TYPE_INT64))).build();
        FileDescriptorProto ip = FileDescriptorProto.newBuilder().setName("shop/item.proto").setPackage("shop").setSyntax("proto3").addDependency("shop/money.proto")
            .addMessageType(DescriptorProto.newBuilder().setName("Note").addField(f("text", 1, FieldDescriptorProto.Type.TYPE_STRING)))
            .addMessageType(DescriptorProto.newBuilder().setName("Item").addField(f("id", 1, FieldDescriptorProto.Type.TYPE_INT32)).addField(f("name", 2, FieldDescriptorProto.Type.TYPE_STRING))
               .addField(f("price", 3, FieldDescriptorProto.Type.TYPE_MESSAGE).toBuilder().setTypeName(".shop.Money"))).build();
        FileDescriptor mf = FileDescriptor.buildFrom(mp, new FileDescriptor[0]);
        FileDescriptor pf = FileDescriptor.buildFrom(ip, new FileDescriptor[]{mf});
        Descriptor id = pf.findMessageTypeByName("Item"), md = mf.findMessageTypeByName("Money");
        for (var mode : modes.entrySet()) {
            Map<String, Object> config = new HashMap<>(base); config.putAll(mode.getValue());
            Serializer<Object> avro = make("io.apicurio.registry.serde.avro.AvroKafkaSerializer", config, false);
            Serializer<Object> avroKey = make("io.apicurio.registry.serde.avro.AvroKafkaSerializer", config, true);
            for (int n = 1; n <= 2; n++) {
                GenericRecord k = new GenericData.Record(itemKey); k.put("id", n);
                GenericRecord m = new GenericData.Record(money); m.put("currency", "EUR"); m.put("cents", 100L * n);
                GenericRecord r = new GenericData.Record(item); r.put("id", n); r.put("name", "item " + n); r.put("price", m);
                put("avro-" + mode.getKey(), avroKey, "shop.avro", true, k);
                put("avro-" + mode.getKey(), avro, "shop.avro", false, r);
            }
            Map<String, Object> jc = new HashMap<>(config);
            jc.remove("apicurio.registry.auto-register"); jc.put("apicurio.registry.find-latest", "true"); jc.put("apicurio.registry.serde.validation-enabled", "false");
            Serializer<Object> json = make("io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer", jc, false);
            put("json-" + mode.getKey(), json, "shop.json", false, new com.fasterxml.jackson.databind.ObjectMapper().readTree("{\"id\": 1, \"name\": \"item 1\"}"));
            Serializer<Object> proto = make("io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer", config, false);
            for (int n = 1; n <= 2; n++) {
                Message m = DynamicMessage.newBuilder(md).setField(md.findFieldByName("currency"), "EUR").setField(md.findFieldByName("cents"), 100L * n).build();
                put("protobuf-" + mode.getKey(), proto, "shop.protobuf", false, DynamicMessage.newBuilder(id).setField(id.findFieldByName("id"), n).setField(id.findFieldByName("name"), "item " + n).setField(id.findFieldByName("price"), m).build());
            }
        }
        System.exit(0);
    }
    static FieldDescriptorProto f(String name, int number, FieldDescriptorProto.Type type) {
        return FieldDescriptorProto.newBuilder().setName(name).setNumber(number).setType(type).setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL).build();
    }
}
