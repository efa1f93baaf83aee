import NetworkIO
import Primitives
import Testing

@testable import HTTPClient

@Suite("Addresses of which nobody on the internet is asked")
struct PublicAddressTests {
    @Test(
        "Private, loopback, link-local and special addresses are not public, in IPv6's forms of them too",
        arguments: [
            "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "169.254.169.254", "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "224.0.0.1", "255.255.255.255", "::", "::1",
            "::ffff:10.0.0.1", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "64:ff9b::a00:1", "2001:db8::1",
            "2002:a00:1::", "2001::1",
        ])
    func notPublic(_ text: String) throws {
        #expect(try #require(SocketAddress(numeric: text)).isPublic == false)
    }

    @Test(
        "Addresses beside those are public",
        arguments: [
            "1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.0", "126.0.0.1", "169.253.0.1",
            "172.15.0.1",
            "172.32.0.1", "192.0.1.1", "192.167.0.1", "198.17.0.1", "198.20.0.1", "223.0.0.1", "::ffff:1.1.1.1",
            "2606:4700::1111", "2001:200::1", "2003::1", "3fff:ffff::1",
        ])
    func isPublic(_ text: String) throws {
        #expect(try #require(SocketAddress(numeric: text)).isPublic)
    }
}
