/*
 * Publishes what a user says as a turn, from Java, with the clients of Apache Kafka alone.
 *
 * MNEMOLOG_KAFKA=127.0.0.1:9092 java -cp 'FOLDER_OF_JARS/*' examples/Producer.java alice "I live in Bern."
 */
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

class Producer {
  public static void main(String[] arguments) throws Exception {
    String user = arguments[0], said = arguments[1], turnId = UUID.randomUUID().toString();
    String topic = System.getenv().getOrDefault("MNEMOLOG_TOPIC_PREFIX", "") + "conversation_turns";
    Map<String, Object> settings = Map.of(
        "bootstrap.servers", System.getenv("MNEMOLOG_KAFKA"), "acks", "all", "enable.idempotence", true);
    Map<String, Object> turn = Map.of(
        "turn_id", turnId,
        "scope", Map.of("user_id", user),
        "occurred_at", Instant.now().toString(),
        "messages", List.of(Map.of("role", "user", "content", said)));
    StringSerializer texts = new StringSerializer();
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, texts, texts)) {
      // The turns of a user are in one partition, in their order: the key is the tenant and the user.
      String json = new ObjectMapper().writeValueAsString(turn);
      producer.send(new ProducerRecord<>(topic, "default/" + user, json)).get();
    }
    System.out.println(turnId);
  }
}
