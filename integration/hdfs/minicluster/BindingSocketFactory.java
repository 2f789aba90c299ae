import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import org.apache.hadoop.net.StandardSocketFactory;

/** Binds a daemon's outgoing connections to its own loopback address. */
public class BindingSocketFactory extends StandardSocketFactory {
  @Override
  public Socket createSocket() throws IOException {
    Socket socket = super.createSocket();
    String address = System.getProperty("quern.bind");
    if (address != null) {
      socket.bind(new InetSocketAddress(address, 0));
    }
    return socket;
  }
}
