import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.FileIOLoader;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;

/** Objects of an S3 server that are plain files: s3://BUCKET/a/b is /a/b, given credentials. */
public class S3Files implements FileIOLoader {
    @Override
    public String getScheme() {
        return "s3";
    }

    @Override
    public FileIO load(Path path) {
        return new Opened();
    }

    static class Opened extends LocalFileIO {
        @Override
        public void configure(CatalogContext context) {
            super.configure(context);
            if (!context.options().containsKey("fs.s3a.access.key")) {
                throw new IllegalStateException("no credentials of S3");
            }
        }
    }
}
