package org.apache.paimon.mergetree.compact;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.paimon.compact.CompactUnit;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.mergetree.LevelSortedRun;
import org.apache.paimon.mergetree.SortedRun;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.stats.SimpleStats;

/**
 * What Java's own strategies pick of sorted runs. In their package, because their clock is theirs.
 *
 * <p>A case has runs (pairs of level and size, newest first) and the numbers of the options; the answer is "COUNT:LEVEL" of
 * the newest runs, or "-".
 */
public final class Picks {

    public static String of(JsonNode one) {
        int levels = one.get("levels").asInt();
        List<LevelSortedRun> runs = runs(one.get("runs"));
        if (one.path("full").asBoolean())
            return text(CompactStrategy.pickFullCompaction(levels, runs, null, null, false));
        CompactStrategy strategy = strategy(one);
        if (!one.hasNonNull("gentle")) return text(strategy.pick(levels, runs));
        // A bucket that grows by one run a time, up to its first compaction.
        for (int from = runs.size() - 1; from > 0; from--) {
            Optional<CompactUnit> early = strategy.pick(levels, runs.subList(from, runs.size()));
            if (early.isPresent()) return (runs.size() - from) + "=" + text(early);
        }
        return runs.size() + "=" + text(strategy.pick(levels, runs));
    }

    private static CompactStrategy strategy(JsonNode one) {
        UniversalCompaction universal = new UniversalCompaction(one.get("amplification").asInt(), one.get("ratio").asInt(),
                one.get("trigger").asInt(), early(one), offPeak(one.get("off_peak"), one.get("hour").asInt()));
        if (!one.get("forced").asBoolean()) return universal;
        return new ForceUpLevel0Compaction(universal, one.hasNonNull("gentle") ? one.get("gentle").asInt() : null);
    }

    private static EarlyFullCompaction early(JsonNode one) {
        long[] now = {one.hasNonNull("last") ? one.get("last").asLong() : 0};
        EarlyFullCompaction early = new EarlyFullCompaction(number(one, "interval"), number(one, "total"), number(one, "incremental")) {
            @Override
            long currentTimeMillis() {
                return now[0];
            }
        };
        if (one.hasNonNull("last")) early.updateLastFullCompaction();
        now[0] = one.get("now").asLong();
        return early;
    }

    /** Whether an hour is off peak is asked with that hour; the strategy asks with the hour it is, so it is told all day. */
    private static OffPeakHours offPeak(JsonNode given, int hour) {
        if (given.isNull()) return null;
        OffPeakHours asked = OffPeakHours.create(given.get(0).asInt(), given.get(1).asInt(), given.get(2).asInt());
        return asked == null ? null : OffPeakHours.create(0, 24, asked.currentRatio(hour));
    }

    private static List<LevelSortedRun> runs(JsonNode given) {
        List<LevelSortedRun> runs = new ArrayList<>();
        for (JsonNode run : given) {
            DataFileMeta file = DataFileMeta.forAppend("run-" + runs.size(), run.get(1).asLong(), 1, SimpleStats.EMPTY_STATS,
                    0, 0, 0, List.of(), null, null, null, null, null, null);
            runs.add(new LevelSortedRun(run.get(0).asInt(), SortedRun.fromSingle(file)));
        }
        return runs;
    }

    private static Long number(JsonNode one, String name) {
        return one.hasNonNull(name) ? one.get(name).asLong() : null;
    }

    private static String text(Optional<CompactUnit> unit) {
        return unit.filter(u -> !u.files().isEmpty()).map(u -> u.files().size() + ":" + u.outputLevel()).orElse("-");
    }
}
