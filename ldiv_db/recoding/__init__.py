"""From values to codes and back: encoding, the labels of classes, the rules of global recodings."""
