internal import MediaControl
internal import Primitives

extension ReceiveLayer {
    mutating func summarize(
        _ codec: Codec, _ payload: UnsafeRawBufferPointer, _ marker: Bool, _ extensions: ReceivedExtensions,
        _ packet: UnsafeRawBufferPointer
    ) -> PayloadSummary? { PayloadSummary() }
}
