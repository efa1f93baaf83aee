internal import CNice
public import Primitives

/// The outcome of a Binding request.
public enum CheckOutcome: Sendable, Hashable {
    /// Authentic and answered with success; whether it carried USE-CANDIDATE.
    case answered(nominates: Bool)
    /// Authentic, but not a check of a controlling agent, or with an unknown comprehension-required attribute: answered with an error (487, 420).
    case refused
    case dropped(DropReason)
}

extension STUNAgent {
    /// Validates a Binding request under `local`'s password and sends the response to its source.
    ///
    /// A lite agent stays controlled whatever the tie-breakers are (RFC 8445 section 6.1.1), so a request with ICE-CONTROLLED is answered with 487
    /// and makes the peer controlling. `isControlling` is for the client's side, which does the reverse. `beforeAnswer` is called for an authentic
    /// check, with whether it nominates; what it writes is sent ahead of the response.
    public func answer(
        _ request: UnsafeRawBufferPointer, local: ICECredential, from source: SocketAddress,
        isControlling: Bool = false, into output: inout OutboundBatch,
        beforeAnswer: (Bool, inout OutboundBatch) -> Void = { _, _ in }
    ) -> CheckOutcome {
        guard let room = output.reserve(Self.maximumMessage) else { return .dropped(.outboundFull) }
        var message = StunMessage()
        let status = validate(request, &message, local)
        switch status {
        case STUN_VALIDATION_SUCCESS: break
        case STUN_VALIDATION_UNKNOWN_REQUEST_ATTRIBUTE:
            return refuseUnknownAttributes(&message, room, source, &output)
        case STUN_VALIDATION_UNAUTHORIZED, STUN_VALIDATION_UNAUTHORIZED_BAD_REQUEST: return .dropped(.stunUnauthorized)
        default: return .dropped(.stunMalformed)
        }
        let conflict = isControlling ? STUN_ATTRIBUTE_ICE_CONTROLLING : STUN_ATTRIBUTE_ICE_CONTROLLED
        if stun_message_has_attribute(&message, conflict) { return refuseRole(&message, room, source, &output) }
        beforeAnswer(stun_message_has_attribute(&message, STUN_ATTRIBUTE_USE_CANDIDATE), &output)
        guard let behind = output.reserve(Self.maximumMessage) else { return .dropped(.outboundFull) }
        return confirm(&message, behind, source, isControlling, &output)
    }

    /// libnice requests the password by this callback; it keeps the pointer in the message until the reply is written.
    private func validate(
        _ request: UnsafeRawBufferPointer, _ message: inout StunMessage, _ local: ICECredential
    ) -> StunValidationStatus {
        stun_agent_validate(
            agent, &message, request.baseAddress?.assumingMemoryBound(to: UInt8.self), request.count,
            { _, _, _, _, password, length, context in
                guard let context, let password, let length else { return false }
                let credential = Unmanaged<ICECredential>.fromOpaque(context).takeUnretainedValue()
                password.pointee = credential.password.baseAddress
                length.pointee = credential.passwordLength
                return true
            }, Unmanaged.passUnretained(local).toOpaque())
    }

    private func confirm(
        _ message: inout StunMessage, _ room: UnsafeMutableRawBufferPointer, _ source: SocketAddress,
        _ isControlling: Bool, _ output: inout OutboundBatch
    ) -> CheckOutcome {
        var reply = StunMessage()
        var length = room.count
        var address = sockaddr_storage()
        let size = cnice_socket_address(&address, source.high, source.low, source.port)
        var control = isControlling
        let result = stun_usage_ice_conncheck_create_reply(
            agent, &message, &reply, room.baseAddress?.assumingMemoryBound(to: UInt8.self), &length, &address, size,
            &control, 0, STUN_USAGE_ICE_COMPATIBILITY_RFC5245)
        guard result == STUN_USAGE_ICE_RETURN_SUCCESS else { return .dropped(.stunMalformed) }
        output.commit(length: length, to: source)
        return .answered(nominates: stun_usage_ice_conncheck_use_candidate(&message))
    }

    private func refuseRole(
        _ message: inout StunMessage, _ room: UnsafeMutableRawBufferPointer, _ source: SocketAddress,
        _ output: inout OutboundBatch
    ) -> CheckOutcome {
        var reply = StunMessage()
        let bytes = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard stun_agent_init_error(agent, &reply, bytes, room.count, &message, STUN_ERROR_ROLE_CONFLICT) else {
            return .dropped(.stunMalformed)
        }
        let length = stun_agent_finish_message(agent, &reply, nil, 0)
        guard length > 0 else { return .dropped(.stunMalformed) }
        output.commit(length: length, to: source)
        return .refused
    }

    private func refuseUnknownAttributes(
        _ message: inout StunMessage, _ room: UnsafeMutableRawBufferPointer, _ source: SocketAddress,
        _ output: inout OutboundBatch
    ) -> CheckOutcome {
        var reply = StunMessage()
        let bytes = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let length = stun_agent_build_unknown_attributes_error(agent, &reply, bytes, room.count, &message)
        guard length > 0 else { return .dropped(.stunMalformed) }
        output.commit(length: length, to: source)
        return .refused
    }
}
