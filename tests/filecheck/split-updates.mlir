// PASSES: split-updates
//
// Of fifty slices put into one tensor, the 24th and the 48th result are handed on through a buffer.

// CHECK-LABEL:   func.func @main
// CHECK-COUNT-24:  tensor.insert_slice
// CHECK:           %[[B:.*]] = bufferization.to_buffer %[[U:.*]] : tensor<64xf32> to memref<64xf32>
// CHECK-NEXT:      %[[X:.*]] = bufferization.to_tensor %[[B]] restrict writable : memref<64xf32> to tensor<64xf32>
// CHECK-NEXT:      tensor.insert_slice %{{.*}} into %[[X]][24]
// CHECK-COUNT-23:  tensor.insert_slice
// CHECK:           bufferization.to_buffer
// CHECK-COUNT-2:   tensor.insert_slice
// CHECK-NOT:       bufferization.to_buffer
func.func @main(%x: tensor<64xf32>, %a: tensor<1xf32>) -> tensor<64xf32> {
  %0 = tensor.insert_slice %a into %x[0] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %1 = tensor.insert_slice %a into %0[1] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %2 = tensor.insert_slice %a into %1[2] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %3 = tensor.insert_slice %a into %2[3] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %4 = tensor.insert_slice %a into %3[4] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %5 = tensor.insert_slice %a into %4[5] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %6 = tensor.insert_slice %a into %5[6] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %7 = tensor.insert_slice %a into %6[7] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %8 = tensor.insert_slice %a into %7[8] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %9 = tensor.insert_slice %a into %8[9] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %10 = tensor.insert_slice %a into %9[10] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %11 = tensor.insert_slice %a into %10[11] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %12 = tensor.insert_slice %a into %11[12] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %13 = tensor.insert_slice %a into %12[13] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %14 = tensor.insert_slice %a into %13[14] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %15 = tensor.insert_slice %a into %14[15] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %16 = tensor.insert_slice %a into %15[16] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %17 = tensor.insert_slice %a into %16[17] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %18 = tensor.insert_slice %a into %17[18] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %19 = tensor.insert_slice %a into %18[19] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %20 = tensor.insert_slice %a into %19[20] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %21 = tensor.insert_slice %a into %20[21] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %22 = tensor.insert_slice %a into %21[22] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %23 = tensor.insert_slice %a into %22[23] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %24 = tensor.insert_slice %a into %23[24] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %25 = tensor.insert_slice %a into %24[25] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %26 = tensor.insert_slice %a into %25[26] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %27 = tensor.insert_slice %a into %26[27] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %28 = tensor.insert_slice %a into %27[28] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %29 = tensor.insert_slice %a into %28[29] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %30 = tensor.insert_slice %a into %29[30] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %31 = tensor.insert_slice %a into %30[31] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %32 = tensor.insert_slice %a into %31[32] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %33 = tensor.insert_slice %a into %32[33] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %34 = tensor.insert_slice %a into %33[34] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %35 = tensor.insert_slice %a into %34[35] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %36 = tensor.insert_slice %a into %35[36] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %37 = tensor.insert_slice %a into %36[37] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %38 = tensor.insert_slice %a into %37[38] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %39 = tensor.insert_slice %a into %38[39] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %40 = tensor.insert_slice %a into %39[40] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %41 = tensor.insert_slice %a into %40[41] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %42 = tensor.insert_slice %a into %41[42] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %43 = tensor.insert_slice %a into %42[43] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %44 = tensor.insert_slice %a into %43[44] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %45 = tensor.insert_slice %a into %44[45] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %46 = tensor.insert_slice %a into %45[46] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %47 = tensor.insert_slice %a into %46[47] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %48 = tensor.insert_slice %a into %47[48] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %49 = tensor.insert_slice %a into %48[49] [1] [1] : tensor<1xf32> into tensor<64xf32>
  return %49 : tensor<64xf32>
}

// A row that is put back into its array stays with it.

// CHECK-LABEL: func.func @row
// CHECK-NOT:     bufferization
func.func @row(%x: tensor<4x64xf32>, %a: tensor<1xf32>) -> tensor<4x64xf32> {
  %r = tensor.extract_slice %x[2, 0] [1, 64] [1, 1] : tensor<4x64xf32> to tensor<64xf32>
  %0 = tensor.insert_slice %a into %r[0] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %1 = tensor.insert_slice %a into %0[1] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %2 = tensor.insert_slice %a into %1[2] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %3 = tensor.insert_slice %a into %2[3] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %4 = tensor.insert_slice %a into %3[4] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %5 = tensor.insert_slice %a into %4[5] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %6 = tensor.insert_slice %a into %5[6] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %7 = tensor.insert_slice %a into %6[7] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %8 = tensor.insert_slice %a into %7[8] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %9 = tensor.insert_slice %a into %8[9] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %10 = tensor.insert_slice %a into %9[10] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %11 = tensor.insert_slice %a into %10[11] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %12 = tensor.insert_slice %a into %11[12] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %13 = tensor.insert_slice %a into %12[13] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %14 = tensor.insert_slice %a into %13[14] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %15 = tensor.insert_slice %a into %14[15] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %16 = tensor.insert_slice %a into %15[16] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %17 = tensor.insert_slice %a into %16[17] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %18 = tensor.insert_slice %a into %17[18] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %19 = tensor.insert_slice %a into %18[19] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %20 = tensor.insert_slice %a into %19[20] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %21 = tensor.insert_slice %a into %20[21] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %22 = tensor.insert_slice %a into %21[22] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %23 = tensor.insert_slice %a into %22[23] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %24 = tensor.insert_slice %a into %23[24] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %25 = tensor.insert_slice %a into %24[25] [1] [1] : tensor<1xf32> into tensor<64xf32>
  %y = tensor.insert_slice %25 into %x[2, 0] [1, 64] [1, 1] : tensor<64xf32> into tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}
