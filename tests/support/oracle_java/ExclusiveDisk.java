import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.FileIOLoader;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;

/**
 * The local disk with a rename that never replaces a file, as HDFS has it.
 *
 * <p>Java's own looks first and moves then, under a lock of its process: a snapshot that another process puts there in between
 * is replaced.
 */
public final class ExclusiveDisk extends LocalFileIO {

    @Override
    public boolean rename(Path from, Path to) throws IOException {
        if (toFile(from).isDirectory()) return super.rename(from, to);
        Files.createDirectories(toFile(to).getParentFile().toPath());
        try {
            Files.createLink(toFile(to).toPath(), toFile(from).toPath());
        } catch (FileAlreadyExistsException | NoSuchFileException e) {
            return false;
        }
        Files.delete(toFile(from).toPath());
        return true;
    }

    /** Makes it the disk of a catalog whose warehouse is a URI of the scheme "file". */
    public static final class Loader implements FileIOLoader {
        @Override
        public String getScheme() { return "file"; }

        @Override
        public FileIO load(Path path) { return new ExclusiveDisk(); }
    }
}
