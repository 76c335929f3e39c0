import java.io.FileInputStream;
import java.security.KeyStore;
import java.util.Base64;

/** Prints the private key of a PKCS12 store in PEM, which keytool does not. Arguments: file, password, alias. */
public final class ExportKey {
    public static void main(String[] arguments) throws Exception {
        char[] password = arguments[1].toCharArray();
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            store.load(file, password);
        }
        byte[] key = store.getKey(arguments[2], password).getEncoded();
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(key);
        System.out.println("-----BEGIN PRIVATE KEY-----\n" + text + "\n-----END PRIVATE KEY-----");
    }
}
