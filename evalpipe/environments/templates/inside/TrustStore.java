// Makes a trust store for Java of a bundle of certificates in PEM: java TrustStore.java BUNDLE STORE
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;

public class TrustStore {
    public static void main(String[] arguments) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (InputStream bundle = Files.newInputStream(Paths.get(arguments[0]))) {
            int number = 0;
            for (Certificate one : CertificateFactory.getInstance("X.509").generateCertificates(bundle)) {
                store.setCertificateEntry("certificate-" + number++, one);
            }
        }
        try (OutputStream target = Files.newOutputStream(Paths.get(arguments[1]))) {
            store.store(target, "changeit".toCharArray());
        }
    }
}
