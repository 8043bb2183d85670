package org.ondeviceprofiler.core

import java.io.IOException
import java.nio.file.FileAlreadyExistsException
import java.nio.file.Files
import java.util.concurrent.CountDownLatch
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class JournalTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val path get() = folder.root.toPath().resolve("events.jsonl")

    private fun events(): List<Event> =
        Files.readAllLines(path).map { decode(it.toByteArray(), "Event", "journal", Event::read) }

    private fun Journal.wait(reason: String) = append { Waiting(it, reason) }

    @Test
    fun `an event is in the file before append returns, with number and clocks`() {
        val clock = FakeClock()
        val journal = Journal(path, "job", clock)
        journal.wait("a")
        clock.sleepNs(5)
        journal.wait("b")
        val stamps = listOf(Stamp(0, "job", 1_000_000, clock.wallNs() - 5), Stamp(1, "job", 1_000_005, clock.wallNs()))
        assertEquals(stamps, events().map { it.stamp })
    }

    @Test
    fun `a journal never continues the file of another job`() {
        Journal(path, "job", FakeClock())
        assertThrows(FileAlreadyExistsException::class.java) { Journal(path, "job", FakeClock()) }
    }

    @Test
    fun `nothing follows the last event of a closed journal`() {
        val journal = Journal(path, "job", FakeClock())
        journal.wait("a")
        journal.close()
        journal.wait("b")
        assertEquals(1, events().size)
        assertTrue(journal.closed)
    }

    @Test
    fun `events of several threads are whole lines without gaps`() {
        val journal = Journal(path, "job", FakeClock())
        val threads = (0 until 4).map { number -> thread { repeat(200) { journal.wait("$number") } } }
        threads.forEach(Thread::join)
        assertEquals((0L until 800).toList(), events().map { it.stamp.seq })
    }

    /** A disk with room for so many bytes. */
    private class FullDisk(private val roomBytes: Int) : JournalFile {
        var content = ByteArray(0)

        override fun write(line: ByteArray): Int {
            val count = minOf(line.size, roomBytes - content.size)
            content += line.copyOf(count)
            return count
        }

        override fun truncate(sizeBytes: Long) {
            content = content.copyOf(sizeBytes.toInt())
        }

        override fun sync() = Unit
    }

    @Test
    fun `a full disk leaves no torn line, and an event that finds room follows`() {
        val disk = FullDisk(300)
        val journal = Journal(path, "job", FakeClock(), disk)
        journal.wait("a")
        val told = assertThrows(IOException::class.java) { journal.wait("b".repeat(500)) }
        assertEquals("No space left on device", told.message)
        journal.wait("c")
        val lines = disk.content.decodeToString().trim().lines()
        val seqs = lines.map { decode(it.toByteArray(), "Event", "journal", Event::read).stamp.seq }
        assertEquals(listOf(0L, 1L), seqs)
    }

    private fun sent(journal: Journal, fromSeq: Long): LinkedBlockingQueue<String> {
        val lines = LinkedBlockingQueue<String>()
        thread(isDaemon = true) {
            JournalSender(journal, fromSeq, gatherMs = 0) { data -> data.decodeToString().trimEnd().lines().forEach(lines::add) }.run()
            lines.add("end")
        }
        return lines
    }

    private fun LinkedBlockingQueue<String>.next(): String? = poll(20, TimeUnit.SECONDS)

    @Test
    fun `what is written is sent as it stands in the file, from the number asked for`() {
        val journal = Journal(path, "job", FakeClock())
        repeat(3) { journal.wait("$it") }
        val lines = sent(journal, fromSeq = 2)
        val written = Files.readAllLines(path)
        assertEquals(written[2], lines.next())
        journal.wait("later")
        assertEquals(Files.readAllLines(path)[3], lines.next())
        journal.close()
        assertEquals("end", lines.next())
    }

    @Test
    fun `a replay from a number that has not come yet waits for it`() {
        val journal = Journal(path, "job", FakeClock())
        journal.wait("0")
        val lines = sent(journal, fromSeq = 2)
        journal.wait("1")
        journal.wait("2")
        assertEquals(2L, decode(lines.next().orEmpty().toByteArray(), "Event", "sent", Event::read).stamp.seq)
        journal.close()
        assertEquals("end", lines.next())
        assertNull(lines.poll())
    }

    @Test
    fun `a host that goes away ends the sending and not the journal`() {
        val journal = Journal(path, "job", FakeClock())
        val ended = CountDownLatch(1)
        thread(isDaemon = true) {
            assertThrows(IOException::class.java) { JournalSender(journal, 0, 0) { throw IOException("gone") }.run() }
            ended.countDown()
        }
        journal.wait("a")
        assertTrue(ended.await(20, TimeUnit.SECONDS))
        journal.wait("b")
        assertEquals(2, events().size)
    }

    @Test
    fun `many long lines are sent whole`() {
        val journal = Journal(path, "job", FakeClock())
        repeat(8) { journal.wait("x".repeat(300_000)) }
        val lines = sent(journal, fromSeq = 3)
        journal.close()
        assertEquals(Files.readAllLines(path).drop(3), (3 until 8).map { lines.next() })
        assertEquals("end", lines.next())
    }
}
