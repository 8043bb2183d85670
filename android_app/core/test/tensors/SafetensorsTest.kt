package org.ondeviceprofiler.core

import java.nio.file.Files
import java.util.Random
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class SafetensorsTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val tensors = mapOf(
        "noise" to Tensor.of(floatArrayOf(1.5f, -2f, Float.MIN_VALUE), 3, 1),
        "none" to Tensor.of(FloatArray(0), 0, 4),
        "tokens" to Tensor.of(intArrayOf(7), 1),
        "scale" to Tensor.of(floatArrayOf(0.25f)),
    )

    private fun read(data: ByteArray): Map<String, Tensor> {
        val path = folder.root.toPath().resolve("file")
        Files.write(path, data)
        return readSafetensors(path)
    }

    private fun refusal(data: ByteArray): String =
        assertThrows(InvalidRecord::class.java) { read(data) }.message.orEmpty()

    @Test
    fun `tensors are read as they were written`() {
        val found = read(safetensors(tensors))
        assertEquals(tensors.keys, found.keys)
        for ((name, tensor) in tensors) {
            assertEquals(tensor.shape, found.getValue(name).shape)
            assertEquals(tensor.dtype, found.getValue(name).dtype)
            assertEquals(tensor.data, found.getValue(name).data)
            assertTrue(found.getValue(name).data.isDirect)
        }
    }

    @Test
    fun `notes are passed over and must be text`() {
        assertEquals(emptyMap<String, Tensor>(), read(safetensors("""{"__metadata__":{"format":"pt"}}""", ByteArray(0))))
        refusal(safetensors("""{"__metadata__":{"format":1}}""", ByteArray(0)))
    }

    private fun one(dtype: String, shape: String, offsets: String) =
        """{"a":{"dtype":"$dtype","shape":$shape,"data_offsets":$offsets}}"""

    @Test
    fun `what breaks the format is refused by name`() {
        val eight = ByteArray(8)
        val cases = listOf(
            one("F32", "[2]", "[0,8]") to ByteArray(12) to "its tensors have 8 bytes, the file 12",
            one("F32", "[2]", "[0,8]") to ByteArray(4) to "its tensors have 8 bytes, the file 4",
            one("F32", "[1]", "[4,8]") to eight to "begins at 4 where 0 was due",
            one("F32", "[2]", "[8,0]") to eight to "has -8 bytes",
            one("F32", "[3]", "[0,8]") to eight to "has 8 bytes for the shape [3]",
            one("F32", "[-2]", "[0,8]") to eight to "no tensor has the shape",
            one("F32", "[65536,65536]", "[0,8]") to eight to "shape",
            one("F32", "[2147483647,2147483647,2147483647]", "[0,8]") to eight to "shape",
            one("F16", "[4]", "[0,8]") to eight to "'a' holds F16",
            one("F32", "[2]", "[0]") to eight to "has 1 offsets",
            one("F32", "[2.0]", "[0,8]") to eight to "expected an integer",
            "[]" to eight to "expected an object",
            "{" to eight to "it ends too early",
        )
        for ((file, words) in cases) {
            val message = refusal(safetensors(file.first, file.second))
            assertTrue("$message lacks $words", words in message)
        }
    }

    @Test
    fun `tensors that lie over each other are refused`() {
        val header = """{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"""
        assertTrue("'b' begins at 4 where 8 was due" in refusal(safetensors(header, ByteArray(12))))
    }

    @Test
    fun `a header longer than its file or than sense is refused before it is read`() {
        assertTrue("it has 3 bytes" in refusal(ByteArray(3)))
        for (last in listOf(0x7F, 0xFF)) {
            val length = ByteArray(8).also { it[7] = last.toByte() }
            assertTrue("leads past its end" in refusal(length + ByteArray(8)))
        }
        assertTrue("more than 4194304" in refusal(safetensors(" ".repeat(5_000_000), ByteArray(0))))
    }

    @Test
    fun `changed and cut files give tensors or a refusal, nothing else`() {
        val whole = safetensors(tensors)
        val random = Random(11)
        repeat(600) {
            val changed = whole.copyOf(if (it % 3 == 0) random.nextInt(whole.size) else whole.size)
            repeat(random.nextInt(4)) { if (changed.isNotEmpty()) changed[random.nextInt(changed.size)] = random.nextInt(256).toByte() }
            try {
                read(changed)
            } catch (_: InvalidRecord) {
                // as it should be
            }
        }
    }

    @Test
    fun `a row is a part of its tensor's memory`() {
        val tensor = Tensor.of(intArrayOf(1, 2, 3, 4, 5, 6), 3, 2)
        val row = tensor.row(1)
        assertEquals(listOf(2), row.shape)
        assertEquals(listOf(3, 4), listOf(row.ints.get(0), row.ints.get(1)))
        row.ints.put(0, 30)
        assertEquals(30, tensor.ints.get(2))
    }
}
