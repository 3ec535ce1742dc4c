import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.StreamTableCommit;

/**
 * JavaWriter BOOTSTRAP TOPIC WAREHOUSE COMMIT_EVERY OPTION...: two reader threads (poll, parse,
 * route by key) feed two writer threads (assign bucket, write); every COMMIT_EVERY events the
 * writers flush and one of them commits.
 */
public class JavaWriter {
  static final int THREADS = 2;
  static final String USER = "bench-java";

  /** Rows of one reader end here for this commit, or for good. */
  static final List<Routed> END_OF_COMMIT = new ArrayList<>();

  static final List<Routed> END_OF_TOPIC = new ArrayList<>();
  private static final int QUEUED = 16;

  private final Map<Long, List<CommitMessage>> halves = new HashMap<>();
  private final StreamTableCommit commit;

  private JavaWriter(FileStoreTable table) {
    commit = table.newStreamWriteBuilder().withCommitUser(USER).newCommit();
  }

  public static void main(String[] arguments) throws Exception {
    FileStoreTable table = Orders.create(arguments[2], Orders.options(arguments, 4));
    int each = Integer.parseInt(arguments[3]) / THREADS;
    List<List<BlockingQueue<List<Routed>>>> queues = new ArrayList<>();
    for (int reader = 0; reader < THREADS; reader++) {
      List<BlockingQueue<List<Routed>>> row = new ArrayList<>();
      for (int writer = 0; writer < THREADS; writer++) {
        row.add(new ArrayBlockingQueue<>(QUEUED));
      }
      queues.add(row);
    }
    ExecutorService threads =
        Executors.newCachedThreadPool(
            job -> {
              Thread thread = new Thread(job);
              thread.setDaemon(true); // so that a failure ends the program
              return thread;
            });
    ExecutorCompletionService<Long> jobs = new ExecutorCompletionService<>(threads);
    JavaWriter program = new JavaWriter(table);
    for (int i = 0; i < THREADS; i++) {
      ChangeReader reader = new ChangeReader(table, i, each, queues.get(i));
      jobs.submit(() -> reader.run(arguments[0], arguments[1]));
      TableWriter writer = new TableWriter(table, i, queues, program);
      jobs.submit(writer::run);
    }
    long events = 0;
    for (int i = 0; i < 2 * THREADS; i++) {
      events += jobs.take().get();
    }
    FirstRecord.report(events);
    System.exit(0);
  }

  /** Commits when the messages of both writers are there. */
  synchronized void prepared(long identifier, List<CommitMessage> messages) throws Exception {
    List<CommitMessage> other = halves.remove(identifier);
    if (other == null) {
      halves.put(identifier, messages);
    } else {
      messages.addAll(other);
      commit.commit(identifier, messages);
    }
  }
}
