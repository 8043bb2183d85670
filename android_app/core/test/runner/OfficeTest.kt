package org.ondeviceprofiler.core

import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class OfficeTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val clock = FakeClock()
    private val left = ArrayList<Int>()
    private val listener = ServerSocket(0, 5, InetAddress.getByName("127.0.0.1"))
    private val sockets = ArrayList<Socket>()
    private val office by lazy {
        val storage = folder.root.toPath()
        Office(DeviceFiles(storage, storage.root), FakeShell(clock)) { left.add(it) }
    }

    @After
    fun end() {
        sockets.forEach(Socket::close)
        listener.close()
    }

    private fun line(): Line {
        sockets.add(Socket("127.0.0.1", listener.localPort))
        return Line(listener.accept().also(sockets::add))
    }

    private fun take() = assertTrue(office.take(Examples.job().copy(onDisconnect = OnDisconnect(DisconnectKind.STOP_AFTER, 5.0))))

    @Test
    fun `the end of a connection that was replaced changes nothing, that of the host's does`() {
        val (former, latter) = line() to line()
        office.hostCame(former)
        take()
        office.hostCame(latter)
        office.hostWent(former)
        clock.sleepNs(100 * NS_PER_S)
        assertFalse(office.cancelled.isSet)
        office.hostWent(latter)
        clock.sleepNs(5 * NS_PER_S)
        assertTrue(office.cancelled.isSet)
        clock.sleepNs(6 * NS_PER_S)
        assertEquals(listOf(Protocol.EXIT_HOST_GONE), left)
    }

    @Test
    fun `a host that comes back calls off what its end set going`() {
        office.hostCame(line())
        take()
        val latter = line()
        office.hostCame(latter)
        office.hostWent(latter)
        clock.sleepNs(4 * NS_PER_S)
        office.hostCame(line())
        clock.sleepNs(100 * NS_PER_S)
        assertFalse(office.cancelled.isSet)
        assertTrue(left.isEmpty())
    }

    @Test
    fun `one job is taken, and no second one`() {
        take()
        assertFalse(office.take(Examples.job()))
    }

    @Test
    fun `a runner with a host or a job is not idle`() {
        office.hostCame(line())
        office.leaveIfIdle()
        assertFalse(office.released.isSet)
        take()
        office.leaveIfIdle()
        assertFalse(office.released.isSet)
    }

    @Test
    fun `a released runner waits for no host that goes`() {
        val host = line()
        office.hostCame(host)
        take()
        office.release()
        office.hostWent(host)
        clock.sleepNs(100 * NS_PER_S)
        assertTrue(left.isEmpty())
    }
}
