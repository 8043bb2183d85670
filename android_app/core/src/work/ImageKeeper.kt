package org.ondeviceprofiler.core

import java.io.FileOutputStream
import java.nio.file.Path

/** Writes each distinct image once, so that a run that is not deterministic shows it. */
internal class ImageKeeper(private val storage: Path, private val journal: Journal) {
    private val kept = HashSet<String>()
    private var wanted = listOf(0, 0)

    /** Take the size that the bundle promises. */
    fun expect(height: Int, width: Int) {
        wanted = listOf(height, width)
    }

    /** Check an image and keep it, unless one like it or enough of them are kept. Throws BrokenImage, IOException. */
    fun keep(image: Image, phase: Phase, number: Int, digest: String) {
        if (listOf(image.height, image.width) != wanted) {
            throw BrokenImage("the image has the shape ${listOf(image.height, image.width)}, its bundle says $wanted")
        }
        checkFinite(image.floatImage, "image")
        if (kept.size == DISTINCT_IMAGES || !kept.add(digest)) return
        val path = storage.resolve("${phase.word}-$number.ppm")
        write(path, image)
        journal.append { Artifact(it, path.fileName.toString(), sha256Of(path), phase, number) }
    }

    private fun write(path: Path, image: Image) {
        FileOutputStream(path.toFile()).use { stream ->
            stream.write("P6\n${image.width} ${image.height}\n255\n".toByteArray())
            stream.write(image.pixels)
            stream.fd.sync()
        }
    }

    private companion object {
        const val DISTINCT_IMAGES = 8
    }
}
