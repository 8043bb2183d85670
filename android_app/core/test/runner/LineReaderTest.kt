package org.ondeviceprofiler.core

import java.io.ByteArrayInputStream
import java.io.InputStream
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Test

class LineReaderTest {
    /** Gives a few bytes at a time, as networks do. */
    private class Drops(data: ByteArray, private val most: Int) : InputStream() {
        private val inner = ByteArrayInputStream(data)

        override fun read(): Int = inner.read()

        override fun read(target: ByteArray, offset: Int, length: Int): Int = inner.read(target, offset, minOf(length, most))
    }

    @Test
    fun `lines come whole however they are parted on the way`() {
        val lines = listOf("", "a", "é".repeat(70_000), "b".repeat(Protocol.MAX_LINE_BYTES - 1), "c")
        for (most in listOf(7, 1000, 1_000_000)) {
            val reader = LineReader(Drops((lines.joinToString("\n") + "\n").toByteArray(), most))
            for (line in lines) assertEquals(line, reader.next()?.decodeToString())
            assertNull(reader.next())
        }
    }

    @Test
    fun `a last line without its end is none`() {
        assertNull(LineReader(ByteArrayInputStream("torn".toByteArray())).next())
    }

    @Test
    fun `a line longer than allowed is refused, whether it ends or not`() {
        for (end in listOf("\n", "")) {
            val reader = LineReader(ByteArrayInputStream(("x".repeat(Protocol.MAX_LINE_BYTES) + end).toByteArray()))
            assertThrows(InvalidRecord::class.java) { reader.next() }
        }
    }
}
