package org.ondeviceprofiler.core

import java.util.Random
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Test

class JsonTest {
    private fun again(text: String): String = parseJson(text.toByteArray()).write()

    private fun refused(text: String): String =
        assertThrows(text, InvalidJson::class.java) { parseJson(text.toByteArray()) }.message.orEmpty()

    @Test
    fun `what is written again means the same`() {
        val texts = listOf("{}", "[]", "null", "true", "[false,-0,1.5,{\"a\":[]}]", "\"\\\"\\\\\\u0001é𝄞\"", "9223372036854775807")
        for (text in texts) assertEquals(text.replace("-0,", "0,"), again(text))
        assertEquals("\"\\\"\\\\/\\u0008\\u000c\\u000a\\u000d\\u0009é𝄞\"", again(" \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud834\\udd1e\" "))
    }

    @Test
    fun `integers and reals are told apart`() {
        assertEquals(JsonArray(listOf(JsonInteger(1), JsonReal(1.0), JsonReal(100.0))), parseJson("[1,1.0,1e2]".toByteArray()))
    }

    @Test
    fun `a real keeps all its bits`() {
        val random = Random(5)
        repeat(2000) {
            val value = Double.fromBits(random.nextLong())
            if (value.isFinite()) assertEquals(JsonReal(value), parseJson(JsonReal(value).write().toByteArray()))
        }
    }

    @Test
    fun `what is not strict JSON is refused`() {
        val broken = listOf(
            "", " ", "{", "[1,]", "{\"a\":1,}", "{a:1}", "'a'", "01", "-", "1.", ".5", "1e", "+1", "NaN", "Infinity", "-Infinity",
            "1e999", "9223372036854775808", "\"\t\"", "\"\\x\"", "\"\\u12\"", "\"\\u+123\"", "\"", "\"\\", "nul", "[1 2]", "{} {}",
            "\"\\ud800\"", "\"\\udc00\\ud800\"", "\u00a0[]", "[1]//",
        )
        broken.forEach(::refused)
    }

    @Test
    fun `a key that stands twice is refused by its name`() {
        assertEquals(true, "'a' stands twice" in refused("{\"a\":1,\"b\":{},\"a\":1}"))
    }

    @Test
    fun `bytes that are not UTF-8 are refused`() {
        assertThrows(InvalidJson::class.java) { parseJson(byteArrayOf(0x22, 0xC3.toByte(), 0x22)) }
    }

    @Test
    fun `thousands of open brackets are refused and do not exhaust the stack`() {
        refused("[".repeat(100_000))
        refused("{\"a\":".repeat(100_000))
    }

    @Test
    fun `NaN is never written`() {
        assertThrows(IllegalArgumentException::class.java) { jsonOf("a" to Double.NaN).write() }
    }

    @Test
    fun `a changed byte anywhere gives a value or a refusal, nothing else`() {
        val text = Examples.bytes("job.json")
        val random = Random(7)
        repeat(3000) {
            val changed = text.copyOf()
            changed[random.nextInt(changed.size)] = random.nextInt(256).toByte()
            try {
                decode(changed, "Job", "fuzz", Job::read)
            } catch (_: InvalidRecord) {
                // as it should be
            }
        }
    }
}
