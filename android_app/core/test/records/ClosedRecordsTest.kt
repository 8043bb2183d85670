package org.ondeviceprofiler.core

import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

class ClosedRecordsTest {
    private val job = Examples.bytes("job.json").decodeToString()

    private fun refusal(text: String): String {
        val refused = assertThrows(InvalidRecord::class.java) { decode(text.toByteArray(), "Job", "the host", Job::read) }
        return refused.message.orEmpty()
    }

    private fun changed(from: String, to: String): String {
        assertTrue(from, from in job)
        return job.replaceFirst(from, to)
    }

    @Test
    fun `an unknown key is named with its place`() {
        val message = refusal(changed("\"memory_interval_ms\"", "\"colour\": 1, \"memory_interval_ms\""))
        assertEquals("the host: not a valid Job: it has the unknown key `colour` - at `$.sampling`", message)
    }

    @Test
    fun `a missing key is named with its place`() {
        assertTrue("lacks the key `path` - at `$.inputs`" in refusal(changed("\"path\"", "\"way\"")))
    }

    @Test
    fun `a value of another kind is refused`() {
        assertTrue("expected an integer, got a number - at `$.warmups`" in refusal(changed("\"warmups\": 1", "\"warmups\": 1.0")))
        assertTrue("expected an integer, got text" in refusal(changed("\"warmups\": 1", "\"warmups\": \"1\"")))
        assertTrue("expected text, got null" in refusal(changed("\"engine\": \"onnxruntime\"", "\"engine\": null")))
        assertTrue("more than 32 bits" in refusal(changed("\"warmups\": 1", "\"warmups\": 4294967297")))
    }

    @Test
    fun `words outside of a closed set are refused`() {
        assertTrue("'gradual' is none of" in refusal(changed("\"burst\"", "\"gradual\"")))
        assertTrue("'Onnx' is no name" in refusal(changed("\"engine\": \"onnxruntime\"", "\"engine\": \"Onnx\"")))
    }

    @Test
    fun `a newer format is refused with a word about updating`() {
        for (place in listOf("{\n \"schema_version\": 2", "\"plan\": {\n  \"schema_version\": 1")) {
            val message = refusal(changed(place, place.dropLast(1) + "3"))
            assertTrue(message, "written in format 3, this runner reads up to 2. Install a newer runner." in message)
        }
    }

    @Test
    fun `tags may stand anywhere in an object`() {
        val line = """{"from_seq":5,"job_id":"x","request":"replay"}"""
        assertEquals(Replay("x", 5), decode(line.toByteArray(), "Request", "the host", Request::read))
    }

    @Test
    fun `what has a default may be left out`() {
        val sampling = decode("{}".toByteArray(), "Sampling", "test", Sampling::read)
        assertEquals(Sampling(20, 1000, 1000), sampling)
    }

    @Test
    fun `an integer will do for a real`() {
        val guidance = decode("""{"text":7}""".toByteArray(), "Guidance", "test", Guidance::read)
        assertEquals(Guidance(7.0, null), guidance)
    }
}
