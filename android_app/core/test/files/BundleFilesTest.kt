package org.ondeviceprofiler.core

import java.nio.file.Files
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class BundleFilesTest {
    @get:Rule
    val temporary = TemporaryFolder()

    private val folder get() = temporary.root.toPath()

    @Test
    fun `a path that would lead outside is refused`() {
        for (path in listOf("", ".", "/etc/passwd", "../a", "a/../../b", "a\\b", "c:/a", "a\u0000b")) {
            val refused = assertThrows(path, InvalidRecord::class.java) { inside(folder, path) }
            assertTrue("unsafe path" in refused.message.orEmpty())
        }
        assertEquals(folder.resolve("a").resolve("b.onnx"), inside(folder, "a//./b.onnx"))
    }

    @Test
    fun `a link on the way is refused, wherever it leads`() {
        Files.createDirectory(folder.resolve("real"))
        Files.createSymbolicLink(folder.resolve("link"), folder.resolve("real"))
        for (path in listOf("link", "link/weights")) {
            val refused = assertThrows(InvalidRecord::class.java) { inside(folder, path) }
            assertTrue("is a link; a bundle holds plain files only" in refused.message.orEmpty())
        }
    }

    @Test
    fun `a file is hashed as everybody hashes it`() {
        val path = folder.resolve("abc")
        Files.write(path, "abc".toByteArray())
        assertEquals("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", sha256Of(path))
    }

    @Test
    fun `a folder without a manifest holds no bundle, and a broken one is named`() {
        assertTrue("holds no bundle" in assertThrows(Refusal::class.java) { loadManifest(folder) }.message.orEmpty())
        Files.write(folder.resolve(MANIFEST), "{}".toByteArray())
        val refused = assertThrows(InvalidRecord::class.java) { loadManifest(folder) }
        assertTrue(refused.message.orEmpty(), "bundle.json: not a valid Bundle: it lacks the key `model`" in refused.message.orEmpty())
    }

    @Test
    fun `absolute paths lie below the root, others in the storage`() {
        val files = DeviceFiles(folder.resolve("storage"), folder.resolve("root"))
        assertEquals(folder.resolve("root/data/local/tmp/b"), files.locate("/data/local/tmp/b"))
        assertEquals(folder.resolve("storage/inputs.safetensors"), files.locate("inputs.safetensors"))
    }
}
