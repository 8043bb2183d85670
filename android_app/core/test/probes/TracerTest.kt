package org.ondeviceprofiler.core

import java.nio.file.Files
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class TracerTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val shell = FakeShell()
    private val journal by lazy { Journal(folder.root.toPath().resolve("events.jsonl"), "job", shell.clock) }
    private val tracer by lazy { Tracer(journal, Sampling(20, 1000, 1000), shell) }

    private fun traces(): List<Trace> =
        Files.readAllLines(journal.path).map { decode(it.toByteArray(), "Event", "journal", Event::read) as Trace }

    @Test
    fun `samples come at their intervals while it is not paused`() {
        tracer.resume()
        tracer.resume()
        shell.clock.sleepNs(100 * NS_PER_MS)
        tracer.pause()
        shell.clock.sleepNs(100 * NS_PER_MS)
        tracer.resume()
        tracer.end()
        val times = traces().single().memory.map { (it.deviceBootNs - 1_000_000) / NS_PER_MS }
        assertEquals(listOf(0L, 20, 40, 60, 80, 100, 200), times)
        assertEquals(2, traces().single().environment.size)
    }

    @Test
    fun `what is taken once is not written again, and nothing writes nothing`() {
        tracer.flush()
        tracer.look()
        tracer.flush()
        tracer.flush()
        assertEquals(1, traces().single().environment.size)
    }

    @Test
    fun `a long trace is parted so that a line stays below the protocol's limit`() {
        tracer.resume()
        shell.clock.sleepNs(500 * NS_PER_S)
        tracer.end()
        assertEquals(25_001, traces().sumOf { it.memory.size })
        assertEquals(501, traces().sumOf { it.environment.size })
        assertTrue(Files.readAllLines(journal.path).all { it.length < Protocol.MAX_LINE_BYTES })
    }
}
