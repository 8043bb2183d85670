package org.ondeviceprofiler.core

import java.net.InetAddress
import java.net.ServerSocket
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.Paths
import java.util.concurrent.CountDownLatch
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread

/** A runner on threads of this process, whose decoder waits until it is let go. */
internal class RunnerInside(private val storage: Path) : AutoCloseable {
    val left = LinkedBlockingQueue<Int>()
    val clock = FakeClock()
    private val decoding = CountDownLatch(1)
    private val goOn = CountDownLatch(1)
    private val shell = FakeShell(clock, FakeEngine(clock, answers = mapOf("decoder" to GraphCall { decode() })))
    val office = Office(DeviceFiles(storage, Paths.get("/")), shell) { left.add(it) }
    private val listener = ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"))
    val port: Int = listener.localPort
    private val worker: Thread

    init {
        Files.write(storage.resolve(Protocol.TOKEN_FILE), "${RawHost.TOKEN}\n".toByteArray())
        thread(isDaemon = true) { Server(listener, office, idleTimeoutMs = 50, gatherMs = 0).run() }
        worker = thread(isDaemon = true) { work() }
    }

    fun host(): RawHost = RawHost(port).greet()

    fun awaitDecoding() = check(decoding.await(20, TimeUnit.SECONDS)) { "no image was made" }

    fun letGo() = goOn.countDown()

    /** Wait for the job's end and return its stop event. */
    fun stopEvent(): Stop {
        worker.join(20_000)
        val lines = Files.readAllLines(storage.resolve(Protocol.JOURNAL_FILE))
        return decode(lines.last().toByteArray(), "Event", "journal", Event::read) as Stop
    }

    private fun work() {
        office.settled.await()
        val assignment = office.assignment ?: return
        Work(assignment.job, office.files, assignment.journal, shell, office.cancelled).run()
    }

    private fun decode(): List<Tensor> {
        decoding.countDown()
        check(goOn.await(20, TimeUnit.SECONDS)) { "never let go" }
        return listOf(Tensor.allocate(DType.FLOAT32, listOf(1, 3, 64, 64)))
    }

    override fun close() {
        letGo()
        office.cancelled.set()
        office.release()
        listener.close()
        office.close()
        worker.join(20_000)
    }
}
