package org.ondeviceprofiler.core

import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

class ExamplesTest {
    private fun <T : Writable> assertSame(data: ByteArray, read: Value.() -> T) {
        val record = decode(data, "record", "example", read)
        assertEquals(parseJson(data), record.toJson())
        assertEquals(parseJson(data), parseJson(encode(record)))
    }

    @Test
    fun `each event is read and written again as it was`() {
        for (name in listOf("events.jsonl", "events_phone.jsonl", "events_failed.jsonl")) {
            Examples.lines(name).forEach { assertSame(it, Event::read) }
        }
    }

    @Test
    fun `a torn journal is whole up to its last line`() {
        val lines = Examples.lines("events_torn.jsonl")
        lines.dropLast(1).forEach { assertSame(it, Event::read) }
        assertThrows(InvalidRecord::class.java) { decode(lines.last(), "Event", "example", Event::read) }
    }

    @Test
    fun `each request and reply is read and written again as it was`() {
        Examples.lines("requests.jsonl").forEach { assertSame(it, Request::read) }
        Examples.lines("replies.jsonl").forEach { assertSame(it, Reply::read) }
    }

    @Test
    fun `every invalid request is refused`() {
        val lines = Examples.lines("requests_invalid.jsonl")
        assertTrue(lines.size >= 8)
        for (line in lines) {
            assertThrows(line.decodeToString(), InvalidRecord::class.java) {
                decode(line, "Request", "the host", Request::read)
            }
        }
    }

    @Test
    fun `job, plan, bundle and schedules are read and written again as they were`() {
        assertSame(Examples.bytes("job.json"), Job::read)
        assertSame(Examples.bytes("plan.json"), Plan::read)
        assertSame(Examples.bytes("bundle.json"), Bundle::read)
        assertSame(Examples.bytes("schedules.json"), Schedules::read)
    }
}
