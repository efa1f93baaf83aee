import AccessTokens
import TestSupport

extension Seeds {
    private static func lines(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }

    @Sendable static func signalling() -> [[UInt8]] {
        let track = #""track":"TR_1""#
        return lines([
            #"{"id":1,"type":"join","room":"R","name":"Ä","profile":"publishOnly","autoSubscribe":false,"roster":true,"maxVideoSubscriptions":4,"receivingConnection":"sub"}"#,
            #"{"id":2,"type":"resume","session":"S_1","seq":18}"#,
            #"{"id":3,"type":"offer","connection":"pub","sdp":"v=0\r\n"}"#,
            #"{"type":"answer","connection":"sub","sdp":"v=0\r\n"}"#,
            #"{"type":"ice","connection":"pub","candidate":"candidate:1 1 udp 1 192.0.2.1 1 typ host","mid":"0"}"#,
            #"{"type":"ice","connection":"pub","candidate":null}"#,
            #"{"id":9007199254740991,"type":"bye","connection":"pub"}"#,
            #"{"id":4,"type":"announce","tracks":[{"track":"cam","source":"camera","name":"c","muted":true,"width":640,"height":360}]}"#,
            #"{"id":5,"type":"layer","# + track + #","height":360}"#,
            #"{"id":5,"type":"layer","# + track + #","rid":"q"}"#,
            #"{"id":5,"type":"view","# + track
                + #","height":720,"framesPerSecond":12.5,"priority":"high","pinned":true,"hidden":false,"paused":false}"#,
            #"{"id":5,"type":"subscribe","# + track + #","spatial":0,"hidden":true}"#,
            #"{"id":5,"type":"bandwidth","mode":"presentation","maxVideoSubscriptions":4,"maxDownlinkBitrate":2500000,"maxUplinkBitrate":1200000,"shortage":"oversend","oversendBitrate":60000}"#,
            #"{"id":5,"type":"join","bandwidth":{"mode":"grid","shortage":"pause","maxVideoSubscriptions":1}}"#,
            #"{"id":5,"type":"allocation"}"#,
            #"{"type":"announce","tracks":[{"track":"cam","source":"screen","hint":"text","priority":"low"}]}"#,
            #"{"id":6,"type":"mute","# + track + #","muted":true}"#, #"{"type":"pauseAllVideo","paused":true}"#,
            #"{"id":7,"type":"relay","to":"PA_2","payload":"{}"}"#, #"{"type":"metadata","name":"n","metadata":"m"}"#,
            #"{"type":"ping","later":{"unknown":[1,2,{"x":null}]}}"#, #"{"id":-1,"type":"leave"}"#, "[]", "nonsense",
            "",
        ])
    }

    @Sendable static func bodies() -> [[UInt8]] {
        lines([
            #"{"name":"Hall","metadata":"x","policy":{"topology":"sfu","maxParticipants":7,"countsHidden":false,"maxPublishers":2,"maxVideoSubscriptions":9,"audioCodecs":["opus","red"],"videoCodecs":["h264","vp8"],"audioOnly":false,"maxVideoBitrate":1500000,"emptyTimeoutSeconds":300,"departureTimeoutSeconds":20}}"#,
            #"{"policy":{"bandwidthMode":"grid","maxDownlinkBitrate":900000,"maxUplinkBitrate":700000,"shortage":"oversend","oversendBitrate":1}}"#,
            #"{"name":"R","policy":{"maxVideoBitrate":-1,"emptyTimeoutSeconds":9223372036854775807}}"#,
            #"{"policy":{"maxParticipants":1e400}}"#, "{}", "[[[[[[[[",
        ])
    }

    @Sendable static func tokens() throws -> [[UInt8]] {
        let claims = [
            #"{"iss":"key1","sub":"alice","name":"A","exp":1700000600,"nbf":1699999990,"iat":1699999991,"video":{"room":"R","roomJoin":true,"canPublish":true,"canSubscribe":false,"canPublishSources":["camera","screen_share"],"hidden":true}}"#,
            #"{"iss":"key1","exp":1700000600.5,"video":{"roomAdmin":true,"canPublishSources":[]},"metadata":"m"}"#,
            #"{"iss":"key1","exp":1700000600,"video":{"subscribeRules":[{"action":"include","all":true},{"action":"exclude","kind":"video"},{"action":"include","participant":"a"}]}}"#,
            #"{"iss":"key1","exp":"soon","video":[]}"#, #"{"iss":"key1","exp":9223372036854775807,"video":null}"#,
        ]
        return lines(claims) + claims.map { Array(TokenTarget.sign(Array($0.utf8)).utf8) }
    }

    @Sendable static func requests() -> [[UInt8]] {
        func request(_ parts: String...) -> [UInt8] { parts.flatMap { FuzzInput.record($0.utf8) } }
        return [
            request("/whip/Broadcast?access_token=a.b.c", "If-Match", "\"tag\", W/\"x\", *"),
            request(
                "/v1/rooms/Caf%C3%A9%20%2F/participants/bob?x=1&x=2&=&a+b=c%2B", "Content-Type", "application/SDP ; x=y"
            ),
            request("/whep/R/%61lice?%zz"), request("/"), request("//..//%2e%2e/?&&==&"), request("*"),
        ]
    }

    @Sendable static func connections() -> [[UInt8]] {
        let texts = [
            "\u{3}GET /a?b=c HTTP/1.1\r\nHost: a\r\nX-A:  b \r\n\r\n\r\nPOST / HTTP/1.1\r\nHost: a:1\r\nContent-Length: 3\r\n\r\nabcGET",
            "\u{1}POST http://h/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: u\r\n\r\nGET / HTTP/1.0\r\n\r\n",
            "\u{7}POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
            "\u{2}OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n",
        ]
        return texts.map { Array($0.utf8) }
    }

    @Sendable static func frames() -> [[UInt8]] {
        func frame(_ first: UInt8, _ text: String) -> [UInt8] {
            let mask: [UInt8] = [1, 2, 3, 4]
            let size: [UInt8] =
                text.utf8.count < 126
                ? [0x80 | UInt8(text.utf8.count)]
                : [0xfe, UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 255)]
            return [first] + size + mask + text.utf8.enumerated().map { $1 ^ mask[$0 % 4] }
        }
        return [
            [3] + frame(0x81, "hello") + frame(0x89, "ping") + frame(0x82, "bytes") + frame(0x88, "\u{3}\u{e8}bye"),
            [0] + frame(0x01, "a") + frame(0x00, "b") + frame(0x8a, "") + frame(0x80, "c") + frame(0x88, ""),
            [7] + frame(0x81, String(repeating: "x", count: 300)) + frame(0x81, String(repeating: "y", count: 1_001)),
            [1, 0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4],
        ]
    }

    @Sendable static func configurations() -> [[UInt8]] {
        lines([
            """
            http: {bind: 127.0.0.1, port: 8080, allowed_origins: ["*"], tls: {certificate: a.pem, key: b.pem}}
            media:
              udp_port: 9000
              announced_addresses: [192.0.2.1, "2001:db8::1"]
              consent_timeout: 20
            keys:
              app: 0123456789abcdef0123456789abcdef
            rooms: {default: Hall, empty_timeout: 86400}
            log: {level: debug, format: json, addresses: false}
            """,
            "a: &x [1, 2]\nb: *x\n", "? complex\n: value\n--- \nsecond: document\n",
            "{a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}}",
            "true", "-1", "1,2,3", "key:secret,other", "2001:db8::1", "%YAML 9.9\n---\n!!binary x: |\n  y\n",
        ])
    }
}
